/** Two revisions compared: of one object as a diff, of a collection as the objects that differ. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, METADATA } from "../api";
import { pathOf, type Kind } from "../discovery";
import { listAt } from "../exact";
import { cut } from "../format";
import { changedBetween, objectAt, type Changed, type Entry } from "../history";
import { formatAddress } from "../router";
import { Difference } from "./difference";

interface Between {
  readonly kind: Kind;
  readonly namespace: string;
  readonly from: number;
  readonly to: number;
}

const MOST = 200;

export function Comparison({ kind, namespace, name, from, to }: Between & { readonly name: string }) {
  return (
    <section class="panel" aria-label="Comparison">
      <header>
        <h2>
          From revision {from} to {to}
        </h2>
      </header>
      {name ? <ObjectComparison kind={kind} namespace={namespace} name={name} from={from} to={to} /> : <CollectionComparison kind={kind} namespace={namespace} from={from} to={to} />}
    </section>
  );
}

function useRead<T>(read: (signal: AbortSignal) => Promise<T>): { readonly found: T | undefined; readonly error: string } {
  const [found, setFound] = useState<T>();
  const [error, setError] = useState("");
  useEffect(() => {
    const aborted = new AbortController();
    read(aborted.signal).then(setFound, (problem: unknown) => {
      if (!aborted.signal.aborted) setError(problem instanceof ApiError ? problem.message : String(problem));
    });
    return () => aborted.abort();
  }, []);
  return { found, error };
}

function ObjectComparison({ kind, namespace, name, from, to }: Between & { readonly name: string }) {
  const { found, error } = useRead((signal) => Promise.all([from, to].map((revision) => objectAt(kind, namespace, name, revision, signal))));
  if (error) return <p class="error">{cut(error, 400)}</p>;
  if (!found) return <p class="empty">Comparing …</p>;
  const [before, after] = found;
  return (
    <>
      {!before && <p class="note">{after ? `It did not exist at revision ${from}.` : "It existed at neither revision."}</p>}
      {!!before && !after && <p class="note">It did not exist at revision {to}.</p>}
      {(!!before || !!after) && <Difference before={before} after={after} />}
    </>
  );
}

function CollectionComparison({ kind, namespace, from, to }: Between) {
  const { found, error } = useRead(async (signal) => {
    const [before = [], after = []] = await Promise.all([from, to].map((revision) => listAt<Entry>(pathOf(kind, namespace), revision, METADATA, signal)));
    return changedBetween(before, after);
  });
  if (error) return <p class="error">{cut(error, 400)}</p>;
  if (!found) return <p class="empty">Comparing …</p>;
  if (found.length === 0) return <p class="empty">No {kind.plural} differ.</p>;
  return (
    <>
      <ul class="changed">
        {found.slice(0, MOST).map((each) => (
          <ChangedObject key={`${each.namespace}/${each.name}`} kind={kind} changed={each} from={from} to={to} />
        ))}
      </ul>
      {found.length > MOST && <p class="empty">and {found.length - MOST} more</p>}
    </>
  );
}

function ChangedObject({ kind, changed, from, to }: { kind: Kind; changed: Changed; from: number; to: number }) {
  const [open, setOpen] = useState(false);
  const text = [changed.namespace, changed.name].filter(Boolean).join("/");
  const query = { from: String(from), to: String(to) };
  return (
    <li>
      <details onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
        <summary>
          <span class={`badge ${changed.type}`}>{changed.type}</span> {cut(text, 300)}
        </summary>
        {open && (
          <>
            <ObjectComparison kind={kind} namespace={changed.namespace} name={changed.name} from={from} to={to} />
            <a href={formatAddress(["time", kind.id, changed.namespace || "-", changed.name], query)}>Its history</a>
          </>
        )}
      </details>
    </li>
  );
}
