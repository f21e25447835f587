// A modal dialog on the browser's own element: focus stays in it, Esc closes it.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button, IconButton } from "./button";

export function Dialog({ title, close, children, wide }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} class={wide ? "wide" : undefined} onClose={close} onClick={(event) => event.target === element.current && close()}>
      <div class="dialog-body">
        <header>
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label="Close" onClick={close} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, action, danger, busy, close, confirm, children }: { title: string; action: string; danger?: boolean; busy?: boolean; close: () => void; confirm: () => void; children: ComponentChildren }) {
  return (
    <Dialog title={title} close={close}>
      {children}
      <div class="row end">
        <Button onClick={close}>Cancel</Button>
        <Button kind={danger ? "danger" : "primary"} busy={busy} onClick={confirm}>{action}</Button>
      </div>
    </Dialog>
  );
}
