// A text field that asks for completions as one types.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { Field } from "./field";
import { Text } from "./text";

const PAUSE = 120;

export interface SuggestProps {
  label: ComponentChildren;
  help?: ComponentChildren;
  error?: string;
  required?: boolean;
  value: string;
  change: (value: string) => void;
  complete: (value: string, signal: AbortSignal) => Promise<string[]>;
}

export function Suggest({ label, help, error, required, value, change, complete }: SuggestProps) {
  const list = useId();
  const [found, setFound] = useState<string[]>([]);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const asked = useRef<AbortController | undefined>(undefined);
  const timer = useRef(0);
  useEffect(() => () => {
    clearTimeout(timer.current);
    asked.current?.abort();
  }, []);

  const ask = (text: string) => {
    clearTimeout(timer.current);
    asked.current?.abort();
    const mine = (asked.current = new AbortController());
    timer.current = window.setTimeout(() => {
      complete(text, mine.signal).then(
        (values) => {
          if (mine.signal.aborted) return;
          setFound(values.filter((each) => each !== text));
          setActive(-1);
          setOpen(true);
        },
        // Completion is a help; a server without it is no problem.
        () => mine.signal.aborted || setFound([]),
      );
    }, PAUSE);
  };
  const take = (text: string) => {
    asked.current?.abort();
    clearTimeout(timer.current);
    change(text);
    setOpen(false);
  };
  const shown = open && found.length > 0;
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape" && shown) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
    } else if (event.key === "Enter" && shown && active >= 0) {
      event.preventDefault();
      take(found[active]!);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!shown) ask(value);
      else setActive((active + (event.key === "ArrowDown" ? 1 : -1) + found.length) % found.length);
    }
  };
  return (
    <Field label={label} help={help} error={error} required={required} control={(id, described) => (
      <div class="suggest">
        <input id={id} class="input" type="text" autocomplete="off" spellcheck={false} role="combobox" aria-autocomplete="list" aria-expanded={shown} aria-controls={shown ? list : undefined} aria-activedescendant={shown && active >= 0 ? `${list}-${active}` : undefined} aria-describedby={described} aria-invalid={error ? true : undefined} aria-required={required || undefined} value={value}
          onInput={(event) => {
            change(event.currentTarget.value);
            ask(event.currentTarget.value);
          }} onFocus={() => ask(value)} onBlur={() => {
            asked.current?.abort();
            clearTimeout(timer.current);
            setOpen(false);
          }} onKeyDown={keys} />
        {shown && (
          <ul id={list} role="listbox" class="suggestions" aria-label="Completions">
            {found.slice(0, 100).map((each, at) => (
              <li key={each} id={`${list}-${at}`} role="option" aria-selected={at === active} onMouseDown={(event) => {
                event.preventDefault();
                take(each);
              }}><Text text={each} /></li>
            ))}
          </ul>
        )}
      </div>
    )} />
  );
}
