// The head of a page, and the title of the window.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { pendingCount } from "../live";

export function Page({ title, lead, actions, children, wide }: { title: string; lead?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; wide?: boolean }) {
  const asked = pendingCount.value;
  useEffect(() => {
    document.title = `${asked ? `(${asked}) ` : ""}${title} · Consort`;
  }, [title, asked]);
  return (
    <div class={wide ? "page wide" : "page"}>
      <header class="page-head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {lead && <p class="dim">{lead}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Section({ title, actions, children }: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="section">
      <header><h2>{title}</h2>{actions && <div class="row">{actions}</div>}</header>
      {children}
    </section>
  );
}
