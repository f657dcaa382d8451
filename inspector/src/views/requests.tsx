/** Requests as they are answered: `#/requests`, the steps of one as a flame chart, and figures by user agent. */
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { ApiError, k8s } from "../api";
import { cut, milliseconds } from "../format";
import { FilterField } from "../filter_field";
import { formatAddress, refine, useAddress } from "../router";
import { useStream } from "../stream";
import { VirtualRows } from "../virtual";
import { agentsOf } from "../agents";
import { Flame, type TraceDocument } from "./flame";

/** Facts about one answered request. */
export interface RequestLine {
  readonly id: string;
  readonly time: string;
  readonly milliseconds: number;
  readonly verb?: string;
  readonly method?: string;
  readonly path?: string;
  readonly apiGroup?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly user?: string;
  readonly userAgent?: string;
  readonly code?: number;
  /** Bytes of the response, null for a watch. */
  readonly bytes?: number | null;
  /** True for a write that left the object as it was. */
  readonly unchanged?: boolean;
  /** True for a list with a limit or a selector. */
  readonly limited?: boolean;
}
interface Dropped {
  readonly dropped: number;
}

const KEPT = 5000;
const HEIGHT = 26;
const PATH = "/debug/requests";
/** Header field of a server with several processes: which of them has answered, as in "2 of 4". */
const WORKER = "steersman-worker";

export function RequestsView() {
  const { parts, query } = useAddress();
  const id = parts[1] ?? "";
  const tab = query.get("tab") === "agents" ? "agents" : "live";
  const lines = useRef<RequestLine[]>([]);
  const [paused, setPaused] = useState(false);
  const [dropped, setDropped] = useState(0);
  const [processes, setProcesses] = useState(0);
  const [version, changed] = useReducer((count: number, _: unknown) => count + 1, 0);
  const [since] = useState(Date.now);
  const filter = new URLSearchParams({ watch: "true" });
  for (const name of ["user", "verb", "resource", "namespace", "code", "slow"]) {
    const value = query.get(name);
    if (value) filter.set(name, value);
  }
  if (query.get("failed")) filter.set("failed", "true");
  const key = filter.toString();
  useEffect(() => {
    lines.current = [];
    changed(null);
    const aborted = new AbortController();
    filter.delete("watch");
    const seen = (headers: Headers) => setProcesses(Number(headers.get(WORKER)?.split(" of ")[1] ?? 0));
    k8s<{ requests?: RequestLine[] }>(`${PATH}?${filter.toString()}`, { signal: aborted.signal, seen }).then(
      (recent) => {
        const known = new Set(lines.current.map((line) => line.id));
        lines.current = [...(recent.requests ?? []).filter((line) => !known.has(line.id)), ...lines.current];
        changed(null);
      },
      () => undefined, // the stream tells what is wrong
    );
    return () => aborted.abort();
  }, [key]);
  const { ended } = useStream(paused ? null : { path: `${PATH}?${key}` }, (more) => {
    for (const each of more as ReadonlyArray<RequestLine | Dropped>) {
      if ("dropped" in each && !("id" in each)) setDropped((count) => count + each.dropped);
      else lines.current.push(each as RequestLine);
    }
    if (lines.current.length > KEPT * 1.2) lines.current = lines.current.slice(-KEPT);
    changed(null);
  });
  const shown = useMemo(() => {
    const words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const found = lines.current.filter((line) => words.every((word) => textOf(line).toLowerCase().includes(word)));
    return found.reverse();
  }, [version, query.get("q")]);
  return (
    <div class="requests">
      <section class="panel main" aria-label="Requests">
        <header>
          <h1>Requests</h1>
          <span class="count">{shown.length.toLocaleString("en")}</span>
          <input data-filter type="search" placeholder="Filter ( / )" aria-label="Filter requests" value={query.get("q") ?? ""} onInput={(event) => refine({ q: event.currentTarget.value })} />
          <FilterField name="user" />
          <FilterField name="verb" />
          <FilterField name="resource" />
          <FilterField name="slow" placeholder="slow, e.g. 50ms" />
          <label class="check">
            <input type="checkbox" checked={!!query.get("failed")} onChange={(event) => refine({ failed: event.currentTarget.checked ? "1" : "" })} /> failed
          </label>
          <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            {paused ? "Resume" : "Pause"}
          </button>
          <div class="tabs" role="tablist">
            <button type="button" role="tab" aria-selected={tab === "live"} onClick={() => refine({ tab: "" })}>
              Live
            </button>
            <button type="button" role="tab" aria-selected={tab === "agents"} onClick={() => refine({ tab: "agents" })}>
              By user agent
            </button>
          </div>
        </header>
        {ended && ended.code === 404 && <p class="note">This server does not show its requests: it is not Steersman, or an older one.</p>}
        {ended && ended.code === 403 && <p class="note">Your user may not read {PATH}.</p>}
        {ended && ended.code !== 404 && ended.code !== 403 && ended.code !== 200 && <p class="error">{cut(ended.message, 300)}</p>}
        {processes > 1 && <p class="note">This server has {processes} processes, and each knows the requests that it has answered itself: these are the ones of the processes that answer this page.</p>}
        {dropped > 0 && <p class="note">{dropped.toLocaleString("en")} requests were left out, as they came faster than the page takes them.</p>}
        {!ended && shown.length === 0 && <p class="empty">Waiting for requests …</p>}
        {tab === "agents" ? (
          <Agents lines={shown} seconds={(Date.now() - since) / 1000} />
        ) : (
          shown.length > 0 && (
            <VirtualRows
              count={shown.length}
              height={HEIGHT}
              label="Requests"
              header={
                <div class="row head request" role="row">
                  {["Time", "Took", "Code", "Verb", "What", "User", "Agent"].map((name) => (
                    <span key={name} role="columnheader">
                      {name}
                    </span>
                  ))}
                </div>
              }
              row={(index, style) => {
                const line = shown[index];
                if (!line) return null;
                return (
                  <div key={line.id + line.time} class={`row request ${line.id === id ? "selected" : ""}`} role="row" aria-rowindex={index + 2} style={style}>
                    <span role="gridcell">{line.time.slice(11, 23)}</span>
                    <span role="gridcell">{milliseconds(line.milliseconds / 1000)}</span>
                    <span role="gridcell" class={(line.code ?? 0) >= 500 ? "bad" : (line.code ?? 0) >= 400 ? "warn" : ""}>
                      {line.code}
                    </span>
                    <span role="gridcell">{cut(line.verb ?? line.method ?? "", 20)}</span>
                    <span role="gridcell">
                      <a href={formatAddress(["requests", line.id], Object.fromEntries(query))}>{cut(whatOf(line), 200)}</a>
                    </span>
                    <span role="gridcell">{cut(line.user ?? "", 80)}</span>
                    <span role="gridcell">{cut(line.userAgent ?? "", 80)}</span>
                  </div>
                );
              }}
            />
          )
        )}
      </section>
      {id && <One key={id} id={id} />}
    </div>
  );
}

function whatOf(line: RequestLine): string {
  if (!line.resource) return line.path ?? "";
  const resource = line.subresource ? `${line.resource}/${line.subresource}` : line.resource;
  return [resource, [line.namespace, line.name].filter(Boolean).join("/")].filter(Boolean).join(" ");
}

function textOf(line: RequestLine): string {
  return `${line.id} ${line.code} ${line.verb} ${line.path} ${whatOf(line)} ${line.user} ${line.userAgent}`;
}

function One({ id }: { id: string }) {
  const { query } = useAddress();
  const [found, setFound] = useState<TraceDocument | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const aborted = new AbortController();
    k8s<TraceDocument>(`${PATH}/${encodeURIComponent(id)}`, { signal: aborted.signal }).then(setFound, (problem: unknown) => {
      if (!aborted.signal.aborted) setError(problem instanceof ApiError ? problem.message : String(problem));
    });
    return () => aborted.abort();
  }, [id]);
  return (
    <section class="panel steps" aria-label="Steps of the request">
      <header>
        <h2>Steps</h2>
        <a class="button" href={formatAddress(["requests"], Object.fromEntries(query))}>
          Close
        </a>
      </header>
      {error && <p class="error">{cut(error, 300)}</p>}
      {found && <Flame trace={found} />}
    </section>
  );
}

function Agents({ lines, seconds }: { lines: readonly RequestLine[]; seconds: number }) {
  const agents = agentsOf(lines);
  return (
    <div class="scroll">
      <table class="figures">
        <caption>Of the last {lines.length.toLocaleString("en")} requests, in {Math.round(seconds)} s</caption>
        <thead>
          <tr>
            {["User agent", "Requests", "Reads", "Writes", "Failed", "Conflicts", "Writes without a change", "Lists without a limit", "Slowest"].map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {agents.map((agent) => (
            <tr key={agent.name}>
              <th scope="row">{cut(agent.name || "–", 100)}</th>
              <td>{agent.requests}</td>
              <td>{agent.reads}</td>
              <td>{agent.writes}</td>
              <td class={agent.failed ? "warn" : ""}>{agent.failed}</td>
              <td class={agent.conflicts ? "warn" : ""}>{agent.conflicts}</td>
              <td class={agent.unchanged ? "warn" : ""}>{agent.unchanged ?? "–"}</td>
              <td class={agent.unlimited ? "warn" : ""}>{agent.unlimited ?? "–"}</td>
              <td>{milliseconds(agent.slowest / 1000)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
