// Structured content: a table if it is one, else a tree, with the tables in it.
import { useMemo, useState } from "preact/hooks";
import { isObject, type Keys } from "../schema/model";
import { columnsOf, Rows } from "./rows";
import { Tree } from "./tree";

export function Structure({ value }: { value: unknown }) {
  const tables = useMemo(() => found(value), [value]);
  const [asTree, setAsTree] = useState(false);
  if (!tables.length) return <Tree value={value} />;
  return (
    <div class="stack">
      <div class="switch" role="group" aria-label="View">
        <button type="button" aria-pressed={!asTree} onClick={() => setAsTree(false)}>Table</button>
        <button type="button" aria-pressed={asTree} onClick={() => setAsTree(true)}>Tree</button>
      </div>
      {asTree ? <Tree value={value} /> : (
        <>
          {tables.map(({ name, rows, columns }) => (
            <div key={name}>
              {name && <p class="label">{name} <span class="dim">{rows.length}</span></p>}
              <Rows rows={rows} columns={columns} label={name || "result as a table"} />
            </div>
          ))}
          {isObject(value) && Object.keys(value).length > tables.length && <Tree value={Object.fromEntries(Object.entries(value).filter(([name]) => !tables.some((table) => table.name === name)))} />}
        </>
      )}
    </div>
  );
}

/** The value itself, or those members of it that are lists of flat objects. */
function found(value: unknown): { name: string; rows: Keys[]; columns: string[] }[] {
  const candidates: [string, unknown][] = Array.isArray(value) ? [["", value]] : isObject(value) ? Object.entries(value) : [];
  return candidates.flatMap(([name, each]) => {
    const columns = columnsOf(each);
    return columns ? [{ name, rows: each as Keys[], columns }] : [];
  });
}
