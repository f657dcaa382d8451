import { describe, expect, it } from "vitest";
import { RowStore, type Column } from "./rows";
import { parseOrder, selectRows } from "./selection";

const COLUMNS: Column[] = [
  { name: "Name", type: "string", priority: 0 },
  { name: "Restarts", type: "integer", priority: 0 },
  { name: "Age", type: "string", priority: 0 },
];

function table(...rows: Array<[name: string, restarts: unknown, created?: string]>) {
  return {
    columnDefinitions: COLUMNS,
    rows: rows.map(([name, restarts, creationTimestamp = "2026-01-31T12:00:00Z"]) => ({ cells: [name, restarts, "5m"], object: { metadata: { name, namespace: "default", creationTimestamp } } })),
  };
}

function names(store: RowStore, text: string, order = ""): string[] {
  return selectRows(store.rows.values(), store.columns, text, parseOrder(order)).map((row) => row.metadata.name);
}

describe("rows", () => {
  it("follow the events of a watch", () => {
    const store = new RowStore();
    store.apply("ADDED", table(["a", 0], ["b", 1]));
    store.apply("MODIFIED", { rows: table(["b", 2]).rows, columnDefinitions: null });
    store.apply("DELETED", table(["a", 0]));
    expect([...store.rows.values()].map((row) => row.cells)).toEqual([["b", "2", "5m"]]);
    expect(store.columns).toEqual(COLUMNS);
  });

  it("that a new list lacks are gone", () => {
    const store = new RowStore();
    store.apply("ADDED", table(["a", 0], ["b", 1]));
    store.keep(new Set(["default/b"]));
    expect([...store.rows.keys()]).toEqual(["default/b"]);
  });

  it("show values of any type as text", () => {
    const store = new RowStore();
    store.apply("ADDED", table(["a", null], ["b", { c: 1 }], ["d", true]));
    expect([...store.rows.values()].map((row) => row.cells[1])).toEqual(["", '{"c":1}', "true"]);
  });

  it("are filtered by all words, in names and cells", () => {
    const store = new RowStore();
    store.apply("ADDED", table(["web-1", 0], ["web-2", 7], ["db-7", 0]));
    expect(names(store, "WEB 7")).toEqual(["web-2"]);
    expect(names(store, "  ")).toEqual(["db-7", "web-1", "web-2"]);
  });

  it("are sorted as people count, and by the time of creation", () => {
    const store = new RowStore();
    store.apply("ADDED", table(["a-10", 2, "2026-01-01T00:00:00Z"], ["a-9", 10, "2026-01-03T00:00:00Z"], ["b", 1, "2026-01-02T00:00:00Z"]));
    expect(names(store, "")).toEqual(["a-9", "a-10", "b"]);
    expect(names(store, "", "Restarts")).toEqual(["b", "a-10", "a-9"]);
    expect(names(store, "", "-Restarts")).toEqual(["a-9", "a-10", "b"]);
    expect(names(store, "", "Age")).toEqual(["a-9", "b", "a-10"]);
    expect(names(store, "", "No such column")).toEqual(["a-9", "a-10", "b"]);
  });
});
