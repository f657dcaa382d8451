/** Objects of one kind, live: `#/objects/KIND`, and a list of all kinds. */
import { useMemo, useState } from "preact/hooks";
import { ageOf, cut } from "../format";
import { useRowKeys } from "../keys";
import { useKind, useKinds } from "../kinds";
import { NamespaceChoice } from "../namespaces";
import { FilterField } from "../filter_field";
import { formatAddress, go, refine, useAddress } from "../router";
import { useRows, type Row } from "../rows";
import { parseOrder, selectRows } from "../selection";
import { VirtualRows } from "../virtual";
import type { Kind } from "../discovery";
import { revisionOf } from "../exact";
import { ObjectView } from "./object";
import { PastNote, PastObject } from "./past";

const HEIGHT = 28;
const USUAL = ["pods", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "services", "configmaps", "secrets", "persistentvolumeclaims", "nodes", "namespaces"];

export function ObjectsView() {
  const { parts, query } = useAddress();
  const at = revisionOf(query.get("at"));
  const [, id = "", namespace = "", name = ""] = parts;
  const kind = useKind(id || "pods");
  const kinds = useKinds();
  return (
    <div class="objects">
      <KindList kinds={kinds} current={kind?.id ?? ""} at={at} />
      {!kind ? (
        <section class="panel main">
          <h1>Objects</h1>
          <p class={kinds.length ? "error" : "empty"}>{kinds.length ? `The server has no kind ${cut(id, 200)}.` : "Reading kinds …"}</p>
        </section>
      ) : name && at ? (
        <PastObject key={`${kind.id}/${namespace}/${name}/${at}`} kind={kind} namespace={namespace === "-" ? "" : namespace} name={name} at={at} />
      ) : name ? (
        <ObjectView key={`${kind.id}/${namespace}/${name}`} kind={kind} namespace={namespace === "-" ? "" : namespace} name={name} />
      ) : (
        <ObjectTable key={kind.id} kind={kind} at={at} />
      )}
    </div>
  );
}

/** The query of addresses that keep the revision. */
function kept(at: number): Record<string, string> {
  return at ? { at: String(at) } : {};
}

function KindList({ kinds, current, at }: { kinds: readonly Kind[]; current: string; at: number }) {
  const [text, setText] = useState("");
  const groups = useMemo(() => {
    const wanted = text.toLowerCase();
    const found = new Map<string, Kind[]>();
    const usual = USUAL.map((id) => kinds.find((kind) => kind.id === id)).filter((kind): kind is Kind => !!kind);
    if (!wanted) found.set("Usual", usual);
    for (const kind of kinds) {
      if (wanted && !kind.id.includes(wanted) && !kind.kind.toLowerCase().includes(wanted) && !kind.shortNames.includes(wanted)) continue;
      const name = kind.group || "core";
      found.set(name, [...(found.get(name) ?? []), kind]);
    }
    return [...found];
  }, [kinds, text]);
  return (
    <nav class="kinds" aria-label="Kinds">
      <input type="search" placeholder="Kinds" aria-label="Filter kinds" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="kinds-scroll">
        {groups.map(([group, members]) => (
          <section key={group}>
            <h2>{cut(group, 80)}</h2>
            <ul>
              {members.map((kind) => (
                <li key={kind.id}>
                  <a href={formatAddress(["objects", kind.id], kept(at))} aria-current={kind.id === current ? "page" : undefined}>
                    {cut(kind.plural, 80)}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </nav>
  );
}

function ObjectTable({ kind, at }: { kind: Kind; at: number }) {
  const { query } = useAddress();
  const namespace = kind.namespaced ? (query.get("ns") ?? "") : "";
  const labels = query.get("labels") ?? "";
  const fields = query.get("fields") ?? "";
  const text = query.get("q") ?? "";
  const sort = query.get("sort") ?? "";
  const wide = query.get("wide") === "1";
  const { columns, rows, loading, error } = useRows(kind, namespace, labels, fields, at);
  const order = parseOrder(sort);
  const shown = columns.map((column, index) => ({ column, index })).filter(({ column }) => wide || column.priority === 0);
  const found = selectRows(rows.values(), columns, text, order);
  const showsNamespace = kind.namespaced && !namespace;
  const grid = { gridTemplateColumns: `${showsNamespace ? "minmax(90px, 14ch) " : ""}${shown.map(({ column }) => (column.name === "Name" ? "minmax(160px, 2fr)" : "minmax(64px, 1fr)")).join(" ")}` };
  const addressOf = (row: Row) => formatAddress(["objects", kind.id, row.metadata.namespace || "-", row.metadata.name], kept(at));
  const open = (row: Row) => go(addressOf(row));
  const selected = useRowKeys(found.length, (index) => found[index] && open(found[index]));
  const header = (name: string) => (
    <span key={name} role="columnheader" aria-sort={order.column === name ? (order.descending ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={() => refine({ sort: order.column === name ? (order.descending ? "" : `-${name}`) : name })}>
        {cut(name || "Namespace", 60)}
        {order.column === name && <span aria-hidden="true">{order.descending ? " ↓" : " ↑"}</span>}
      </button>
    </span>
  );
  return (
    <section class="panel main table" aria-label={kind.kind}>
      <header>
        <h1>{cut(kind.kind, 80)}</h1>
        <span class="count" aria-live="polite">
          {found.length === rows.size ? rows.size.toLocaleString("en") : `${found.length.toLocaleString("en")} of ${rows.size.toLocaleString("en")}`}
        </span>
        <input data-filter type="search" placeholder="Filter ( / )" aria-label="Filter rows" value={text} onInput={(event) => refine({ q: event.currentTarget.value })} />
        <FilterField name="labels" placeholder="Label selector" />
        {kind.namespaced && (
          <NamespaceChoice label="Namespace" all="all namespaces" value={namespace} change={(ns) => refine({ ns })} />
        )}
        <label class="check">
          <input type="checkbox" checked={wide} onChange={(event) => refine({ wide: event.currentTarget.checked ? "1" : "" })} /> wide
        </label>
      </header>
      {at > 0 && <PastNote at={at} />}
      {fields && (
        <p class="note">
          Only objects with <code>{cut(fields, 200)}</code>. <button type="button" onClick={() => refine({ fields: "" })}>Show all</button>
        </p>
      )}
      {error && <p class="error">{cut(error, 600)}</p>}
      {loading && rows.size === 0 && !error && <p class="empty">Reading {kind.plural} …</p>}
      {!loading && !error && rows.size === 0 && <p class="empty">No {kind.plural}{namespace ? ` in ${namespace}` : ""}.</p>}
      {rows.size > 0 && found.length === 0 && <p class="empty">No row matches the filter.</p>}
      {found.length > 0 && (
        <VirtualRows
          count={found.length}
          height={HEIGHT}
          label={kind.kind}
          selected={selected}
          header={
            <div class="row head" role="row" style={grid}>
              {showsNamespace && header("")}
              {shown.map(({ column }) => header(column.name))}
            </div>
          }
          row={(index, style) => {
            const row = found[index];
            if (!row) return null;
            return (
              <div key={row.key} class={`row ${index === selected ? "selected" : ""} ${row.metadata.deletionTimestamp ? "leaving" : ""}`} role="row" aria-rowindex={index + 2} aria-selected={index === selected} style={{ ...grid, ...style }}>
                {showsNamespace && <span role="gridcell">{cut(row.metadata.namespace ?? "", 80)}</span>}
                {shown.map(({ column, index: cell }) => (
                  <span key={column.name} role="gridcell" class={tone(column.name, row.cells[cell] ?? "")} title={cut(row.cells[cell] ?? "", 1000)}>
                    {column.name === "Name" ? (
                      <a tabIndex={-1} href={addressOf(row)}>
                        {cut(row.cells[cell] ?? "", 300)}
                      </a>
                    ) : column.name === "Age" ? (
                      ageOf(row.metadata.creationTimestamp)
                    ) : (
                      cut(row.cells[cell] ?? "", 300)
                    )}
                  </span>
                ))}
              </div>
            );
          }}
        />
      )}
    </section>
  );
}

const BAD = /^(Failed|Error|CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|NotReady|Lost|Evicted|InvalidImageName|CreateContainer\w*Error)/;
const WAITING = /^(Pending|ContainerCreating|Terminating|PodInitializing|Init:|Unknown|SchedulingGated)/;

function tone(column: string, text: string): string {
  if (column !== "Status" && column !== "Phase") return "";
  return BAD.test(text) ? "bad" : WAITING.test(text) ? "warn" : "";
}
