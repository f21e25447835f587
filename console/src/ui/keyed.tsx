// A long list in groups, with its keys: up, down and Enter work in its search field and in the list.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useId, useState } from "preact/hooks";
import { go } from "../router";
import { Text } from "./text";
import { WindowList } from "./window";

export type Row<T> = { head: string; note: string } | { item: T };

export interface KeyedProps<T> {
  label: string;
  rows: Row<T>[];
  id: (item: T) => string;
  /** The id of the one that is shown beside the list. */
  chosen: string;
  href: (item: T) => string;
  /** Two lines: a `tool-line` and one that is cut. */
  draw: (item: T) => ComponentChildren;
  /** Changes when the list became another one. */
  about: string;
  search: (keys: (event: KeyboardEvent) => void) => ComponentChildren;
  /** What is shown in place of an empty list. */
  children?: ComponentChildren;
}

export function Keyed<T>({ label, rows, id, chosen, href, draw, about, search, children }: KeyedProps<T>) {
  const base = useId();
  const [active, setActive] = useState(-1);
  useEffect(() => setActive(rows.findIndex((row) => "item" in row && id(row.item) === chosen)), [rows, chosen]);
  const keys = (event: KeyboardEvent) => {
    const row = rows[active];
    if (event.key === "Enter") {
      const first = row && "item" in row ? row : rows.find((row) => "item" in row);
      if (!first || !("item" in first)) return;
      event.preventDefault();
      go(href(first.item));
      return;
    }
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    let next = active + by;
    while (rows[next] && !("item" in rows[next]!)) next += by;
    if (rows[next]) setActive(next);
  };
  const height = useCallback((at: number) => (rows[at] && "item" in rows[at]! ? 56 : 36), [rows]);
  return (
    <>
      {search(keys)}
      {rows.length > 0 && (
        <WindowList id={base} label={label} count={rows.length} height={height} active={active} about={about} onKeyDown={keys} row={(at) => {
          const row = rows[at]!;
          if (!("item" in row)) return <div key={`head ${row.head}`} class="group-head" role="presentation"><strong><Text text={row.head} /></strong><span class="dim number">{row.note}</span></div>;
          const mine = id(row.item);
          return <a key={mine} id={`${base}-${at}`} role="option" tabIndex={-1} aria-selected={mine === chosen} class={at === active ? "tool-row active" : "tool-row"} href={href(row.item)}>{draw(row.item)}</a>;
        }} />
      )}
      {children}
    </>
  );
}

/** Items by their group, each group with a head. */
export function grouped<T>(items: T[], of: (item: T) => string, note: (group: T[]) => string): Row<T>[] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(of(item));
    if (group) group.push(item);
    else groups.set(of(item), [item]);
  }
  return [...groups].flatMap(([head, group]): Row<T>[] => [{ head, note: note(group) }, ...group.map((item) => ({ item }))]);
}
