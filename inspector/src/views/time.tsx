/** History: `#/time/KIND/NAMESPACE/NAME?from=A&to=B`, what was written when and by whom, and two revisions compared. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import type { Kind } from "../discovery";
import { revisionOf } from "../exact";
import { cut } from "../format";
import { mergedWrites, readSummary, readWrites, type Summary, type Write } from "../history";
import { useKind, useKinds } from "../kinds";
import { NamespaceChoice } from "../namespaces";
import { formatAddress, go, refine, useAddress } from "../router";
import { Comparison } from "./comparison";
import { Timeline } from "./timeline";
import { WriteTable } from "./writes";

const EVERY = 5000;

interface Problem {
  readonly code: number;
  readonly message: string;
}
interface History {
  readonly summary: Summary | null;
  readonly writes: readonly Write[];
  readonly loading: boolean;
  readonly problem: Problem | null;
  /** Reads older writes; undefined if there are none. */
  readonly older?: () => void;
}

export function TimeView() {
  const { parts, query } = useAddress();
  const [, id = "", place = "", name = ""] = parts;
  const kind = useKind(id || "deployments.apps");
  const namespace = place && place !== "-" ? place : (query.get("ns") ?? "");
  return (
    <div class="time">
      <h1>Time</h1>
      <Subject key={`${id}/${namespace}/${name}`} kind={kind} id={id} namespace={namespace} name={name} />
      {!kind && !id && <p class="empty">Reading kinds …</p>}
      {kind && <KindHistory key={`${kind.id}/${namespace}/${name}`} kind={kind} namespace={kind.namespaced ? namespace : ""} name={name} />}
    </div>
  );
}

function addressOf(kind: Kind, namespace: string, name: string): string {
  if (name) return formatAddress(["time", kind.id, kind.namespaced ? namespace || "default" : "-", name]);
  return formatAddress(["time", kind.id], kind.namespaced && namespace ? { ns: namespace } : {});
}

/** The choice of a kind, a namespace and an object. */
function Subject({ kind, id, namespace, name }: { kind: Kind | undefined; id: string; namespace: string; name: string }) {
  const kinds = useKinds();
  const [text, setText] = useState(id || "deployments.apps");
  const [space, setSpace] = useState(namespace);
  const [object, setObject] = useState(name);
  const found = kinds.find((each) => each.id === text || each.plural === text || each.shortNames.includes(text) || each.kind.toLowerCase() === text.toLowerCase());
  return (
    <form
      class="question panel"
      onSubmit={(event) => {
        event.preventDefault();
        if (found) go(addressOf(found, space, object.trim()));
      }}
    >
      <label>
        Kind <input data-filter list="kinds-of-time" value={text} onInput={(event) => setText(event.currentTarget.value)} required />
      </label>
      <datalist id="kinds-of-time">
        {kinds.map((each) => (
          <option key={each.id} value={each.id} />
        ))}
      </datalist>
      <label>
        Namespace{" "}
        <NamespaceChoice all="all namespaces" value={space} disabled={!!found && !found.namespaced} change={setSpace} />
      </label>
      <label>
        Name <input placeholder="all objects" value={object} onInput={(event) => setObject(event.currentTarget.value)} />
      </label>
      <button type="submit" class="primary" disabled={!found}>
        Show
      </button>
      {kinds.length > 0 && !kind && <p class="error">The server has no kind {cut(id, 200)}.</p>}
    </form>
  );
}

function KindHistory({ kind, namespace, name }: { kind: Kind; namespace: string; name: string }) {
  const { query } = useAddress();
  const { summary, writes, loading, problem, older } = useHistory(kind, namespace, name);
  const newest = Number(summary?.newestRevision ?? 0);
  const to = revisionOf(query.get("to")) || newest;
  const from = revisionOf(query.get("from"));
  // the newest revision rises with writes of all objects; these ones are as after their own last write
  const compared = revisionOf(query.get("to")) || Number(writes[0]?.revision ?? (loading ? 0 : newest));
  const choose = (point: "from" | "to", revision: number) => refine({ [point]: revision && !(point === "to" && revision === newest) ? String(revision) : "" });
  return (
    <>
      {problem && <Missing problem={problem} summary={summary} />}
      {summary && (
        <section class="panel" aria-label="Revisions">
          <header>
            <h2>Revisions</h2>
            <span class="count">{kept(summary)}</span>
            <a class="button" href={formatAddress(["objects", kind.id], { ns: namespace, at: String(to) })}>
              {cut(kind.plural, 60)} as of revision {to}
            </a>
          </header>
          <Timeline summary={summary} writes={writes} from={from} to={to} choose={choose} />
        </section>
      )}
      {summary && from > 0 && compared > 0 && <Comparison key={`${from}/${compared}`} kind={kind} namespace={namespace} name={name} from={Math.min(from, compared)} to={Math.max(from, compared)} />}
      {summary && !(problem && writes.length === 0) && (
        <WriteTable kind={kind} single={!!name} writes={writes} loading={loading} from={from} to={to} newest={newest} records={summary.records} choose={choose} {...(older ? { older } : {})} />
      )}
    </>
  );
}

function kept(summary: Summary): string {
  const bounds = summary.bounds ? `, at most ${summary.bounds.replace(",", " and ")}` : "";
  return `${summary.oldestRevision} to ${summary.newestRevision} (${summary.storage}${bounds})`;
}

/** Tells why there is no history, or less than there could be. */
function Missing({ problem, summary }: { problem: Problem; summary: Summary | null }) {
  if (problem.code === 404 && !summary)
    return (
      <p class="note">
        This server keeps no history that can be read: it is kube-apiserver, or another server than Steersman. Objects as of a revision that it still has, five to ten minutes back, are at an address such as{" "}
        <code>#/objects/pods?at=1234</code>.
      </p>
    );
  if (problem.code === 403)
    return (
      <p class="note">
        Your user may not read this history: {cut(problem.message, 400)}. It needs the right to get the path /debug/history and those below it, and to read the objects.
      </p>
    );
  return <p class="error">{cut(problem.message, 600)}</p>;
}

/** Read a summary and the newest writes, and again while the page is looked at. */
function useHistory(kind: Kind, namespace: string, name: string): History {
  const [summary, setSummary] = useState<Summary | null>(null);
  const [writes, setWrites] = useState<readonly Write[]>([]);
  const [token, setToken] = useState("");
  const [loading, setLoading] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const aborted = useRef(new AbortController());
  const failed = (error: unknown, signal: AbortSignal) => {
    if (signal.aborted) return;
    setLoading(false);
    setProblem(error instanceof ApiError ? { code: error.code, message: error.message } : { code: 0, message: String(error) });
  };
  useEffect(() => {
    const { signal } = (aborted.current = new AbortController());
    let timer: ReturnType<typeof setTimeout> | undefined;
    let known = "";
    const read = async () => {
      try {
        if (!document.hidden) {
          const found = await readSummary(signal);
          setSummary(found);
          if (found.newestRevision !== known) {
            const page = await readWrites(kind, namespace, name, "", signal);
            setWrites((before) => mergedWrites(before, page.items ?? []));
            if (!known) setToken(page.continue ?? "");
            known = found.newestRevision;
          }
          setLoading(false);
          setProblem(null);
        }
      } catch (error) {
        failed(error, signal);
        if (error instanceof ApiError && (error.code === 404 || error.code === 403)) return;
      }
      if (!signal.aborted) timer = setTimeout(() => void read(), EVERY);
    };
    void read();
    return () => {
      aborted.current.abort();
      clearTimeout(timer);
    };
  }, []);
  const older = () => {
    const { signal } = aborted.current;
    setLoading(true);
    readWrites(kind, namespace, name, token, signal).then(
      (page) => {
        setWrites((before) => mergedWrites(before, page.items ?? []));
        setToken(page.continue ?? "");
        setLoading(false);
      },
      (error: unknown) => failed(error, signal),
    );
  };
  return { summary, writes, loading, problem, ...(token ? { older } : {}) };
}
