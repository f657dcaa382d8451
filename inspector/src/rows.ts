/** Rows of a Table, kept current by a watch. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, k8s, TABLE } from "./api";
import { channel } from "./channel";
import { pathOf, type Kind } from "./discovery";

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly priority: number;
  readonly description?: string;
}
export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
}
interface TableRow {
  readonly cells: readonly unknown[];
  readonly object: { readonly metadata: Metadata };
}
interface Table {
  readonly columnDefinitions?: readonly Column[] | null;
  readonly rows?: readonly TableRow[] | null;
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
}
interface WatchEvent {
  readonly type: string;
  readonly object: Table & { readonly code?: number; readonly message?: string };
}

export interface Row {
  readonly key: string;
  readonly metadata: Metadata;
  /** Text of the cells, as shown and searched. */
  readonly cells: readonly string[];
}

export interface Rows {
  readonly columns: readonly Column[];
  readonly rows: ReadonlyMap<string, Row>;
  readonly loading: boolean;
  readonly error: string;
}

const FIRST_PAGE = 500;
const PAGE = 5000;
const LONGEST_PAUSE = 15_000;

/** A local copy of the rows; `apply` and `list` are all that changes it. */
export class RowStore {
  columns: readonly Column[] = [];
  readonly rows = new Map<string, Row>();

  apply(type: string, table: Table): void {
    this.take(table.columnDefinitions);
    for (const each of table.rows ?? []) {
      const row = rowOf(each);
      if (type === "DELETED") this.rows.delete(row.key);
      else this.rows.set(row.key, row);
    }
  }

  /** Remove all rows that are not in `keys`: a list was read anew. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this.rows.keys()) if (!keys.has(key)) this.rows.delete(key);
  }

  private take(columns: readonly Column[] | null | undefined): void {
    if (columns?.length) this.columns = columns;
  }
}

function rowOf(row: TableRow): Row {
  const metadata = row.object.metadata;
  const key = `${metadata.namespace ?? ""}/${metadata.name}`;
  return { key, metadata, cells: row.cells.map(textOf) };
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function query(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) found.set(name, String(value));
  return `?${found.toString()}`;
}

/** Follows the rows of a kind until `stop`; calls `changed` after each batch of changes. */
export class RowFollower {
  readonly store = new RowStore();
  loading = true;
  error = "";
  private pause = 500;
  private closed = false;
  private close: () => void = () => undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly aborted = new AbortController();

  constructor(
    private readonly path: string,
    private readonly parameters: Readonly<Record<string, string>>,
    private readonly changed: () => void,
  ) {
    void this.list();
  }

  stop(): void {
    this.closed = true;
    this.aborted.abort();
    clearTimeout(this.timer);
    this.close();
  }

  private async list(): Promise<void> {
    const keys = new Set<string>();
    let token = "";
    let version = "";
    try {
      do {
        const limit = token ? PAGE : FIRST_PAGE;
        const table: Table = await k8s<Table>(
          this.path + query({ ...this.parameters, limit, continue: token, includeObject: "Metadata" }),
          { accept: TABLE, signal: this.aborted.signal },
        );
        this.store.apply("ADDED", table);
        for (const each of table.rows ?? []) keys.add(rowOf(each).key);
        token = table.metadata?.continue ?? "";
        version = table.metadata?.resourceVersion ?? "";
        this.error = "";
        this.changed();
      } while (token);
    } catch (error) {
      if (this.closed) return;
      if (error instanceof ApiError && error.code === 410) return this.again();
      this.fail(error instanceof ApiError ? error.message : String(error));
      return;
    }
    this.store.keep(keys);
    this.loading = false;
    this.changed();
    this.watch(version);
  }

  private watch(version: string): void {
    if (this.closed) return;
    let last = version;
    const since = Date.now();
    this.close = channel().open(
      {
        path:
          this.path +
          query({ ...this.parameters, watch: "true", resourceVersion: last, allowWatchBookmarks: "true", includeObject: "Metadata" }),
        accept: TABLE,
      },
      {
        lines: (lines) => {
          for (const { type, object } of lines as readonly WatchEvent[]) {
            if (type === "ERROR") return this.again();
            last = object.rows?.at(-1)?.object.metadata.resourceVersion ?? object.metadata?.resourceVersion ?? last;
            if (type !== "BOOKMARK") this.store.apply(type, object);
          }
          this.changed();
        },
        end: (code, message) => {
          if (this.closed) return;
          if (Date.now() - since > LONGEST_PAUSE) this.pause = 500;
          if (code === 410) return this.again();
          if (code !== 200) this.error = message;
          this.changed();
          this.later(() => (code === 200 ? this.watch(last) : void this.list()));
        },
      },
    );
  }

  private again(): void {
    this.close();
    this.later(() => void this.list());
  }

  private fail(message: string): void {
    this.error = message;
    this.loading = false;
    this.changed();
    this.later(() => void this.list());
  }

  private later(work: () => void): void {
    this.timer = setTimeout(() => this.closed || work(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }
}

const NOTHING: Rows = { columns: [], rows: new Map(), loading: true, error: "" };

/** The rows of a kind, followed while the component is shown. Changes are drawn once a frame. */
export function useRows(kind: Kind | undefined, namespace: string, labels: string, fields = ""): Rows {
  const [, draw] = useState(0);
  const follower = useRef<RowFollower | null>(null);
  useEffect(() => {
    if (!kind) return;
    let frame = 0;
    const current = new RowFollower(pathOf(kind, namespace), { labelSelector: labels, fieldSelector: fields }, () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        draw((count) => count + 1);
      });
    });
    follower.current = current;
    draw((count) => count + 1);
    return () => {
      cancelAnimationFrame(frame);
      current.stop();
      follower.current = null;
    };
  }, [kind?.id, kind?.version, namespace, labels, fields]);
  const found = follower.current;
  if (!found) return NOTHING;
  return { columns: found.store.columns, rows: found.store.rows, loading: found.loading, error: found.error };
}
