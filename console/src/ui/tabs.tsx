// Tabs by the ARIA pattern: arrows move, the panel follows.
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

export interface Tab {
  id: string;
  label: ComponentChildren;
  body: () => ComponentChildren;
  /** Stays as it is while another tab is shown. */
  keep?: boolean;
}

export function Tabs({ tabs, chosen, choose, label }: { tabs: Tab[]; chosen: string; choose: (id: string) => void; label: string }) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const at = Math.max(0, tabs.findIndex((tab) => tab.id === chosen));
  const current = tabs[at];
  if (!current) return null;
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const next = (at + step + tabs.length) % tabs.length;
    choose(tabs[next]!.id);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="tabs">
      <div role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map((tab) => (
          <button type="button" role="tab" key={tab.id} id={`${base}-${tab.id}`} aria-controls={tab.keep || tab.id === current.id ? `${base}-${tab.id}-panel` : undefined} aria-selected={tab.id === current.id} tabIndex={tab.id === current.id ? 0 : -1} onClick={() => choose(tab.id)}>
            {tab.label}
          </button>
        ))}
      </div>
      {tabs.map((tab) => (tab.keep || tab.id === current.id) && (
        <div role="tabpanel" key={tab.id} id={`${base}-${tab.id}-panel`} aria-labelledby={`${base}-${tab.id}`} hidden={tab.id !== current.id}>{tab.body()}</div>
      ))}
    </div>
  );
}
