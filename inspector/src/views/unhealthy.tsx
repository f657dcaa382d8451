/** What is unhealthy in the cluster, worst first. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, request } from "../api";
import { cut } from "../format";
import { formatAddress } from "../router";
import { useKinds } from "../kinds";
import { kindNamed } from "../discovery";
import { Copied, ObjectLink, Unread, type Reference, type Severity } from "./explanation";

const EVERY = 30_000;
const SHOWN = 20;
const MORE = 100;

/** An unhealthy object: the reason in one line, and the command that explains it. */
interface UnhealthyObject {
  readonly severity: Severity;
  readonly subject: Reference;
  readonly message: string;
  readonly command: string;
}
interface Overview {
  readonly items?: readonly UnhealthyObject[];
  /** Resources that could not be read. */
  readonly unread?: readonly string[];
}

/** `namespace` limits what is shown to its objects; all are shown without one. */
export function Unhealthy({ namespace = "" }: { namespace?: string }) {
  const [shown, setShown] = useState(SHOWN);
  const [found, setFound] = useState<Overview | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const aborted = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        setFound(await request<Overview>(namespace ? `/why?namespace=${encodeURIComponent(namespace)}` : "/why", { signal: aborted.signal }));
        setError("");
      } catch (problem) {
        if (aborted.signal.aborted) return;
        setError(problem instanceof ApiError ? problem.message : String(problem));
      }
      timer = setTimeout(() => void read(), EVERY);
    };
    setFound(null);
    void read();
    return () => {
      aborted.abort();
      clearTimeout(timer);
    };
  }, [namespace]);
  const items = found?.items ?? [];
  return (
    <section aria-label="Unhealthy" class="panel">
      <header>
        <h2>Unhealthy</h2>
        {items.length > 0 && <span class="count">{items.length.toLocaleString("en")}</span>}
      </header>
      {error && <p class="error">{cut(error, 600)}</p>}
      {!found && !error && <p class="empty">Looking …</p>}
      {found && items.length === 0 && <p class="empty">{found.unread?.length ? "Nothing in what could be read." : "Nothing that needs attention."}</p>}
      <ul class="unhealthy">
        {items.slice(0, shown).map((each) => (
          <UnhealthyItem key={JSON.stringify(each.subject)} found={each} />
        ))}
      </ul>
      {items.length > shown && (
        <button type="button" onClick={() => setShown(shown + MORE)}>
          {(items.length - shown).toLocaleString("en")} more
        </button>
      )}
      <Unread resources={found?.unread} />
    </section>
  );
}

function UnhealthyItem({ found }: { found: UnhealthyObject }) {
  const kinds = useKinds();
  const { subject, severity } = found;
  const kind = kindNamed(kinds, subject.apiVersion ?? "v1", subject.kind ?? "");
  return (
    <li>
      <span class={`badge ${severity}`}>{severity}</span>
      <span>
        <ObjectLink object={subject} /> <small>{cut(subject.namespace ?? "", 63)}</small>
      </span>
      <span class="message">{cut(found.message, 300)}</span>
      {kind ? (
        <a href={formatAddress(["why", kind.id, kind.namespaced ? (subject.namespace ?? "") : "-", subject.name ?? ""])} aria-label={`Why ${subject.name ?? ""}`} title={cut(found.command, 300)}>
          why
        </a>
      ) : (
        found.command && <Copied text={found.command} />
      )}
    </li>
  );
}
