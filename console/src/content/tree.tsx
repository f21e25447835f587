// A JSON value as a tree: members are made when they are opened, a hundred at a time.
import { useState } from "preact/hooks";
import { isObject } from "../schema/model";
import { Long, Text } from "../ui/text";

const STEP = 100;

export function Tree({ value, open = 2, name }: { value: unknown; open?: number; name?: string }) {
  return <div class="tree"><Branch value={value} open={open} name={name} /></div>;
}

function Branch({ value, open, name }: { value: unknown; open: number; name?: string }) {
  const list = Array.isArray(value);
  const size = list ? value.length : isObject(value) ? Object.keys(value).length : -1;
  const [isOpen, setOpen] = useState(open > 0 && size <= 50);
  const [shown, setShown] = useState(STEP);
  const label = name !== undefined && <span class="tree-name"><Text text={name} /><span class="dim">: </span></span>;
  if (size < 0) return <div class="leaf">{label}<Leaf value={value} /></div>;
  if (!size) return <div class="leaf">{label}<span class="dim">{list ? "[]" : "{}"}</span></div>;
  const entries: [string, unknown][] = !isOpen ? [] : list ? value.slice(0, shown).map((each, at) => [String(at), each]) : Object.entries(value as object).slice(0, shown);
  return (
    <div>
      <button type="button" class="twig" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class="turn" aria-hidden="true">{isOpen ? "▾" : "▸"}</span>{label}<span class="dim">{list ? `[${size}]` : `{${size}}`}</span>
      </button>
      {isOpen && (
        <div class="branch">
          {entries.map(([key, each]) => <Branch key={key} name={key} value={each} open={open - 1} />)}
          {size > shown && <button type="button" class="linkish" onClick={() => setShown(shown + STEP)}>show {Math.min(STEP, size - shown)} more of {size - shown}</button>}
        </div>
      )}
    </div>
  );
}

export function Leaf({ value }: { value: unknown }) {
  if (typeof value === "string") return <span class="leaf-text">"<Long text={value} limit={400} />"</span>;
  return <span class="leaf-value">{JSON.stringify(value) ?? "undefined"}</span>;
}
