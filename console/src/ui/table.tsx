// A table that becomes cards on a narrow screen.
import type { ComponentChildren } from "preact";

export interface Column<T> { name: string; cell: (row: T) => ComponentChildren; number?: boolean; hideLabel?: boolean }

export function Table<T>({ columns, rows, id, label, open }: { columns: Column<T>[]; rows: T[]; id: (row: T) => string; label: string; open?: (row: T) => void }) {
  return (
    <table class={open ? "table opens" : "table"} aria-label={label}>
      <thead>
        <tr>{columns.map((column) => <th scope="col" key={column.name} class={column.number ? "number" : undefined}>{column.hideLabel ? <span class="sr">{column.name}</span> : column.name}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={id(row)} onClick={open && ((event) => (event.target as Element).closest("a,button,input,select") || open(row))}>
            {columns.map((column) => <td key={column.name} data-label={column.hideLabel ? "" : column.name} class={column.number ? "number" : undefined}>{column.cell(row)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
