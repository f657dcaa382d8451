/** The cluster: nodes as a heat map, rates as plots, what is unhealthy first, events as they happen. */
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { request } from "../api";
import { bytes, cores, milliseconds, rate } from "../format";
import { NamespaceChoice } from "../namespaces";
import { Plot } from "../plot";
import { formatAddress, refine, useAddress } from "../router";
import { useStream } from "../stream";
import { EventList } from "./events";
import { Unhealthy } from "./unhealthy";

interface Amount {
  readonly allocatable: number;
  readonly requested: number;
  readonly used?: number | null;
}
export interface NodeRow {
  readonly name: string;
  readonly ready: boolean;
  readonly cordoned: boolean;
  readonly zone: string;
  readonly problems: readonly string[];
  readonly taints: number;
  readonly cpu: Amount;
  readonly memory: Amount;
  readonly mostPods: number;
  readonly phases: Readonly<Record<string, number>>;
}
interface Changes {
  readonly nodes: readonly NodeRow[];
  readonly gone: readonly string[];
  readonly phases: Readonly<Record<string, number>>;
  readonly unplaced: number;
  readonly synced: boolean;
}
interface Rates {
  readonly at: number;
  readonly requests: Readonly<Record<string, number>>;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly events: number;
  readonly inflight: number;
  readonly error: string;
}

const MEASURES = {
  "cpu-requested": "CPU requested",
  "cpu-used": "CPU used",
  "memory-requested": "Memory requested",
  "memory-used": "Memory used",
  pods: "Pods",
} as const;
type Measure = keyof typeof MEASURES;

const KEPT = 120;

/** Share of a node that is taken, 0 to 1 and more; null if it is not known. */
export function share(node: NodeRow, measure: Measure): number | null {
  if (measure === "pods") {
    const count = Object.values(node.phases).reduce((sum, each) => sum + each, 0);
    return node.mostPods ? count / node.mostPods : null;
  }
  const amount = measure.startsWith("cpu") ? node.cpu : node.memory;
  const value = measure.endsWith("used") ? (amount.used ?? null) : amount.requested;
  return value === null || !amount.allocatable ? null : value / amount.allocatable;
}

export function ClusterView() {
  const { query } = useAddress();
  const namespace = query.get("ns") ?? "";
  const wanted = query.get("measure") ?? "";
  const measure: Measure = wanted in MEASURES ? (wanted as Measure) : "cpu-requested";
  const nodes = useRef(new Map<string, NodeRow>());
  const [summary, setSummary] = useState<Changes | null>(null);
  const [version, changed] = useReducer((count: number) => count + 1, 0);
  const stream = useStream({ source: "cluster" }, (lines, first) => {
    if (first) nodes.current.clear();
    for (const change of lines as readonly Changes[]) {
      for (const each of change.nodes) nodes.current.set(each.name, each);
      for (const each of change.gone) nodes.current.delete(each);
      setSummary(change);
    }
    changed(undefined as never);
  });
  const sorted = useMemo(
    () => [...nodes.current.values()].sort((a, b) => worst(b) - worst(a) || a.name.localeCompare(b.name, "en", { numeric: true })),
    [version],
  );
  const pods = Object.values(summary?.phases ?? {}).reduce((sum, each) => sum + each, 0);
  const notReady = sorted.filter((node) => !node.ready).length;
  return (
    <div class="cluster">
      <h1 class="visually-hidden">Cluster</h1>
      <section class="tiles" aria-label="Summary" hidden={!summary?.synced}>
        <Tile value={sorted.length} name="nodes" href={formatAddress(["objects", "nodes"])} />
        {notReady > 0 && <Tile value={notReady} name="not ready" kind="bad" href={formatAddress(["objects", "nodes"])} />}
        <Tile value={pods} name="pods" href={formatAddress(["objects", "pods"])} />
        {Object.entries(summary?.phases ?? {})
          .sort(([a], [b]) => a.localeCompare(b))
          .map(([phase, count]) => (
            <Tile key={phase} value={count} name={phase.toLowerCase()} kind={phase === "Failed" ? "bad" : phase === "Pending" ? "warn" : ""} href={formatAddress(["objects", "pods"], { q: phase })} />
          ))}
        {(summary?.unplaced ?? 0) > 0 && (
          <Tile value={summary?.unplaced ?? 0} name="without a node" kind="warn" href={formatAddress(["objects", "pods"], { fields: "spec.nodeName=" })} />
        )}
      </section>
      <section aria-label="Nodes" class="panel">
        <header>
          <h2>Nodes</h2>
          <label>
            <span class="visually-hidden">Measure</span>
            <select value={measure} onChange={(event) => refine({ measure: event.currentTarget.value })}>
              {Object.entries(MEASURES).map(([id, name]) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <Scale />
        </header>
        {!summary && !stream.ended && <p class="empty">Reading nodes and pods …</p>}
        {stream.ended && <p class="error">{stream.ended.message}</p>}
        {stream.ended?.code === 403 && <InNamespace namespace={namespace} />}
        {summary?.synced && sorted.length === 0 && <p class="empty">This cluster has no nodes.</p>}
        <ul class="heat">
          {sorted.map((node) => (
            <Cell key={node.name} node={node} measure={measure} />
          ))}
        </ul>
      </section>
      <Unhealthy namespace={namespace} />
      <RatePlots />
      <EventList namespace={namespace} />
    </div>
  );
}

/** Leads a user without rights in the whole cluster on to one namespace, at first that of the kubeconfig. */
function InNamespace({ namespace }: { namespace: string }) {
  useEffect(() => {
    if (namespace) return;
    void request<{ namespace?: string }>("/info").then(
      (info) => refine({ ns: info.namespace || "default" }),
      () => refine({ ns: "default" }),
    );
  }, [namespace]);
  return (
    <p class="note">
      Your user may not read the whole cluster. Shown is what there is in the namespace <NamespaceChoice key={namespace} label="Namespace" value={namespace} change={(ns) => ns && refine({ ns })} />:{" "}
      <a href={formatAddress(["objects", "pods"], { ns: namespace })}>pods</a>, <a href={formatAddress(["objects", "deployments.apps"], { ns: namespace })}>deployments</a>, what is unhealthy, and events.
    </p>
  );
}

function worst(node: NodeRow): number {
  return (node.ready ? 0 : 4) + (node.problems.length ? 2 : 0) + (node.cordoned ? 1 : 0);
}

function Tile({ value, name, kind = "", href }: { value: number; name: string; kind?: string; href: string }) {
  return (
    <a class={`tile ${kind}`} href={href}>
      <b>{value.toLocaleString("en")}</b> {name}
    </a>
  );
}

function Scale() {
  return (
    <span class="scale" aria-hidden="true">
      0 % <i class="heat-0" />
      <i class="heat-2" />
      <i class="heat-4" />
      <i class="heat-6" />
      <i class="heat-8" />
      <i class="heat-10" /> 100 %
    </span>
  );
}

function Cell({ node, measure }: { node: NodeRow; measure: Measure }) {
  const taken = share(node, measure);
  const step = taken === null ? "none" : String(Math.min(10, Math.max(0, Math.round(taken * 10))));
  const trouble = !node.ready ? "not ready" : node.problems.length ? node.problems.join(", ") : node.cordoned ? "cordoned" : "";
  const title = [
    node.name + (node.zone ? ` (${node.zone})` : ""),
    trouble,
    `CPU ${cores(node.cpu.requested)} of ${cores(node.cpu.allocatable)} requested${node.cpu.used != null ? `, ${cores(node.cpu.used)} used` : ""}`,
    `memory ${bytes(node.memory.requested)} of ${bytes(node.memory.allocatable)} requested${node.memory.used != null ? `, ${bytes(node.memory.used)} used` : ""}`,
    `pods ${Object.entries(node.phases).map(([phase, count]) => `${count} ${phase.toLowerCase()}`).join(", ") || "0"} of ${node.mostPods}`,
  ]
    .filter(Boolean)
    .join("\n");
  return (
    <li>
      <a
        class={`cell heat-${step} ${!node.ready ? "down" : trouble ? "troubled" : ""}`}
        href={formatAddress(["objects", "nodes", "-", node.name])}
        title={title}
        aria-label={`${node.name}${trouble ? `, ${trouble}` : ""}, ${MEASURES[measure]} ${taken === null ? "unknown" : `${Math.round(taken * 100)} %`}`}
      />
    </li>
  );
}

function RatePlots() {
  const [history, setHistory] = useState<readonly Rates[]>([]);
  const { ended } = useStream({ source: "rates" }, (lines) =>
    setHistory((before) => [...before, ...(lines as readonly Rates[])].slice(-KEPT)),
  );
  const last = history.at(-1);
  const good = history.filter((each) => !each.error);
  const times = good.map((each) => each.at);
  const total = (each: Rates, verbs: (verb: string) => boolean) =>
    Object.entries(each.requests ?? {}).reduce((sum, [verb, count]) => (verbs(verb) ? sum + count : sum), 0);
  const reads = (verb: string) => verb === "GET" || verb === "LIST" || verb === "WATCH";
  const failure = ended?.message || last?.error;
  return (
    <section aria-label="Requests" class="panel">
      <header>
        <h2>Requests</h2>
      </header>
      {failure && <p class="error">No figures: {failure}</p>}
      {!failure && good.length === 0 && <p class="empty">Reading metrics …</p>}
      {good.length > 0 && (
        <div class="plots">
          <Plot
            title="Requests per second"
            times={times}
            format={rate}
            lines={[
              { label: "reads", color: "#2f6fde", values: good.map((each) => total(each, reads)) },
              { label: "writes", color: "#d9822b", values: good.map((each) => total(each, (verb) => !reads(verb))) },
            ]}
          />
          <Plot
            title="Latency"
            times={times}
            format={milliseconds}
            lines={[
              { label: "median", color: "#2f6fde", values: good.map((each) => each.p50 ?? null) },
              { label: "99 %", color: "#c23030", values: good.map((each) => each.p99 ?? null) },
            ]}
          />
          <Plot title="Watch events per second" times={times} format={rate} lines={[{ label: "events", color: "#29a634", values: good.map((each) => each.events) }]} />
        </div>
      )}
    </section>
  );
}
