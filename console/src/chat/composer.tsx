// What is said next: Enter sends, Shift and Enter is a new line.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "../ui/button";

interface ComposerProps {
  text: string;
  change: (text: string) => void;
  send: () => void;
  stop?: () => void;
  busy: boolean;
  stopping?: boolean;
  children?: ComponentChildren;
}

const MOST = 12;

export function Composer({ text, change, send, stop, busy, stopping, children }: ComposerProps) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const element = area.current!;
    // Its own height by what is in it: measured at one line, then set.
    element.style.height = "auto";
    const line = parseFloat(getComputedStyle(element).lineHeight);
    element.style.height = `${Math.min(element.scrollHeight + 2, line * MOST)}px`;
  }, [text]);
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!busy && text.trim()) send();
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); if (text.trim()) send(); }}>
      <label class="sr" for={id}>Message</label>
      <textarea ref={area} id={id} class="input" rows={1} value={text} placeholder="Type a message" onInput={(event) => change(event.currentTarget.value)} onKeyDown={press} />
      <div class="row spread">
        <div class="row grow">{children}</div>
        {stop
          ? <Button icon="stop" busy={stopping} onClick={stop}>Stop</Button>
          : <Button kind="primary" icon="send" type="submit" disabled={!text.trim()} busy={busy} title="Enter; Shift+Enter is a new line">Send</Button>}
      </div>
    </form>
  );
}
