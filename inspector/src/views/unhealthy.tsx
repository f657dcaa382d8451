/** What is unhealthy in the cluster, worst first. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, request } from "../api";
import { cut } from "../format";
import { formatAddress } from "../router";
import { useKinds } from "../kinds";
import { kindNamed } from "../discovery";
import { ObjectLink, type Explanation } from "./explanation";

const EVERY = 30_000;
const SHOWN = 20;

interface Overview {
  readonly items: readonly Explanation[];
}

export function Unhealthy() {
  const kinds = useKinds();
  const [found, setFound] = useState<Overview | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const aborted = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        setFound(await request<Overview>("/why", { signal: aborted.signal }));
        setError("");
      } catch (problem) {
        if (aborted.signal.aborted) return;
        setError(problem instanceof ApiError ? problem.message : String(problem));
      }
      timer = setTimeout(() => void read(), EVERY);
    };
    void read();
    return () => {
      aborted.abort();
      clearTimeout(timer);
    };
  }, []);
  return (
    <section aria-label="Unhealthy" class="panel">
      <header>
        <h2>Unhealthy</h2>
      </header>
      {error && <p class="error">{error}</p>}
      {!found && !error && <p class="empty">Looking …</p>}
      {found && found.items.length === 0 && <p class="empty">Nothing that needs attention.</p>}
      <ul class="unhealthy">
        {found?.items.slice(0, SHOWN).map((each, index) => {
          const kind = kindNamed(kinds, each.subject.apiVersion ?? "v1", each.subject.kind ?? "");
          const first = each.findings?.[0];
          return (
            <li key={index}>
              <span class={`badge ${first?.severity ?? "note"}`}>{first?.severity ?? "note"}</span>
              <ObjectLink object={each.subject} />
              <span class="message">{cut(first?.message ?? each.summary, 300)}</span>
              {kind && <a href={formatAddress(["why", kind.id, kind.namespaced ? (each.subject.namespace ?? "") : "-", each.subject.name ?? ""])}>why</a>}
            </li>
          );
        })}
      </ul>
      {found && found.items.length > SHOWN && <p class="empty">and {found.items.length - SHOWN} more</p>}
    </section>
  );
}
