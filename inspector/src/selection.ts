/** Sorting and filtering of rows, and moves of the keyboard's selection. */
import type { Column, Row } from "./rows";

export interface Order {
  /** Name of a column; "" sorts by namespace and name. */
  readonly column: string;
  readonly descending: boolean;
}

export function parseOrder(text: string): Order {
  return text.startsWith("-") ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}

/** Rows that contain all words of `text` in a cell, the name or the namespace, in order. */
export function selectRows(rows: Iterable<Row>, columns: readonly Column[], text: string, order: Order): Row[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found: Row[] = [];
  for (const row of rows) {
    if (words.every((word) => row.key.toLowerCase().includes(word) || row.cells.some((cell) => cell.toLowerCase().includes(word)))) found.push(row);
  }
  const index = columns.findIndex((column) => column.name === order.column);
  const collator = new Intl.Collator("en", { numeric: true });
  const byKey = (a: Row, b: Row) => collator.compare(a.key, b.key);
  const column = columns[index];
  const compare =
    index < 0 || !column
      ? byKey
      : column.name === "Age"
        ? (a: Row, b: Row) => created(b) - created(a) || byKey(a, b)
        : (a: Row, b: Row) => collator.compare(a.cells[index] ?? "", b.cells[index] ?? "") || byKey(a, b);
  found.sort(order.descending ? (a, b) => compare(b, a) : compare);
  return found;
}

function created(row: Row): number {
  return Date.parse(row.metadata.creationTimestamp ?? "") || 0;
}
