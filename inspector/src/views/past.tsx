/** Objects as of a revision: nothing is live, and nothing can be changed. */
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api";
import { pathOf, type Kind } from "../discovery";
import { listAt } from "../exact";
import { cut } from "../format";
import { formatAddress, refine } from "../router";
import { Conditions, type KubernetesObject } from "./object";
import { Yaml } from "./yaml";

export function PastNote({ at }: { at: number }) {
  return (
    <p class="note past" role="status">
      As of revision {at}. Nothing here is live.{" "}
      <button type="button" onClick={() => refine({ at: "" })}>
        Back to now
      </button>
    </p>
  );
}

/** One object as of a revision, from an exact list, as any API server has it. */
export function PastObject({ kind, namespace, name, at }: { kind: Kind; namespace: string; name: string; at: number }) {
  const [object, setObject] = useState<KubernetesObject | null>();
  const [error, setError] = useState("");
  useEffect(() => {
    const aborted = new AbortController();
    listAt<KubernetesObject>(pathOf(kind, namespace), at, "application/json", aborted.signal, { fieldSelector: `metadata.name=${name}` }).then(
      ([found]) => setObject(found ? { ...found, apiVersion: [kind.group, kind.version].filter(Boolean).join("/"), kind: kind.kind } : null),
      (problem: unknown) => {
        if (!aborted.signal.aborted) setError(problem instanceof ApiError ? problem.message : String(problem));
      },
    );
    return () => aborted.abort();
  }, []);
  return (
    <section class="panel main object" aria-label={name}>
      <header>
        <h1>
          <a href={formatAddress(["objects", kind.id], { ns: namespace, at: String(at) })}>{kind.kind}</a>{" "}
          {namespace && <span>{cut(namespace, 80)} / </span>}
          {cut(name, 260)}
        </h1>
        <a class="button" href={formatAddress(["time", kind.id, namespace || "-", name], { to: String(at) })}>
          History
        </a>
      </header>
      <PastNote at={at} />
      {error && <p class="error">{cut(error, 600)}</p>}
      {object === undefined && !error && <p class="empty">Reading …</p>}
      {object === null && <p class="empty">It did not exist at this revision.</p>}
      {object && (
        <>
          <Conditions conditions={object.status?.conditions ?? []} />
          <Yaml object={object} />
        </>
      )}
    </section>
  );
}
