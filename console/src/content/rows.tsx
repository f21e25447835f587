// A list of flat objects as a table.
import { useState } from "preact/hooks";
import { isObject, type Keys, own } from "../schema/model";
import { Long, Text } from "../ui/text";

const STEP = 100;
const COLUMNS = 12;

/** The columns if the value is such a list; undefined if it is something else. */
export function columnsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value) || !value.length) return undefined;
  const names = new Set<string>();
  for (const row of value.slice(0, 500)) {
    if (!isObject(row)) return undefined;
    for (const [name, cell] of Object.entries(row)) {
      if (typeof cell === "object" && cell !== null) return undefined;
      names.add(name);
      if (names.size > COLUMNS) return undefined;
    }
  }
  return names.size ? [...names] : undefined;
}

export function Rows({ rows, columns, label }: { rows: Keys[]; columns: string[]; label: string }) {
  const [shown, setShown] = useState(STEP);
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label={label}>
      <table class="plain-table">
        <thead><tr>{columns.map((name) => <th key={name} scope="col"><Text text={name} /></th>)}</tr></thead>
        <tbody>
          {rows.slice(0, shown).map((row, at) => (
            <tr key={at}>{columns.map((name) => <td key={name} class={typeof own(row, name) === "number" ? "number" : undefined}><Cell value={own(row, name)} /></td>)}</tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown && <button type="button" class="linkish" onClick={() => setShown(shown + STEP)}>show {Math.min(STEP, rows.length - shown)} more of {rows.length - shown}</button>}
    </div>
  );
}

function Cell({ value }: { value: unknown }) {
  if (value === undefined) return null;
  return typeof value === "string" ? <Long text={value} limit={200} /> : <>{JSON.stringify(value)}</>;
}
