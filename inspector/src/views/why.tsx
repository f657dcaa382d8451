/** Why an object is in its state: `#/why/KIND/NAMESPACE/NAME`, with an editor for what-if. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, request } from "../api";
import { cut } from "../format";
import { useKind, useKinds } from "../kinds";
import { formatAddress, go, useAddress } from "../router";
import { Findings, type Explanation } from "./explanation";
import { Unhealthy } from "./unhealthy";
import { Scheduling } from "./scheduling";
import { WhatIf } from "./what_if";

export function WhyView() {
  const { parts } = useAddress();
  const [, id = "", namespace = "", name = ""] = parts;
  return (
    <div class="why">
      <h1>Why</h1>
      <Question id={id} namespace={namespace === "-" ? "" : namespace} name={name} />
      {name ? <Answer key={`${id}/${namespace}/${name}`} id={id} namespace={namespace === "-" ? "" : namespace} name={name} /> : <Unhealthy />}
      <WhatIf />
    </div>
  );
}

function Question({ id, namespace, name }: { id: string; namespace: string; name: string }) {
  const kinds = useKinds();
  const [kind, setKind] = useState(id || "pods");
  const [space, setSpace] = useState(namespace || "default");
  const [object, setObject] = useState(name);
  useEffect(() => {
    setKind(id || "pods");
    setSpace(namespace || "default");
    setObject(name);
  }, [id, namespace, name]);
  const found = kinds.find((each) => each.id === kind || each.plural === kind || each.shortNames.includes(kind) || each.kind.toLowerCase() === kind.toLowerCase());
  return (
    <form
      class="question panel"
      onSubmit={(event) => {
        event.preventDefault();
        if (found && object) go(formatAddress(["why", found.id, found.namespaced ? space : "-", object]));
      }}
    >
      <label>
        Kind <input list="kinds" value={kind} onInput={(event) => setKind(event.currentTarget.value)} required />
      </label>
      <datalist id="kinds">
        {kinds.map((each) => (
          <option key={each.id} value={each.id} />
        ))}
      </datalist>
      <label>
        Namespace <input value={found && !found.namespaced ? "" : space} disabled={!!found && !found.namespaced} onInput={(event) => setSpace(event.currentTarget.value)} />
      </label>
      <label>
        Name <input data-filter value={object} onInput={(event) => setObject(event.currentTarget.value)} required />
      </label>
      <button type="submit" class="primary" disabled={!found}>
        Explain
      </button>
    </form>
  );
}

function Answer({ id, namespace, name }: { id: string; namespace: string; name: string }) {
  const kind = useKind(id);
  const [found, setFound] = useState<Explanation | null>(null);
  const [error, setError] = useState("");
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    if (!kind) return;
    const aborted = new AbortController();
    const query = new URLSearchParams({ kind: kind.id, namespace, name });
    request<Explanation>(`/why?${query.toString()}`, { signal: aborted.signal }).then(
      (explanation) => {
        setFound(explanation);
        setError("");
      },
      (problem: unknown) => {
        if (!aborted.signal.aborted) setError(problem instanceof ApiError ? problem.message : String(problem));
      },
    );
    return () => aborted.abort();
  }, [kind?.id, namespace, name, asked]);
  return (
    <section class="panel answer" aria-live="polite">
      <header>
        <h2>
          {kind ? <a href={formatAddress(["objects", kind.id, namespace || "-", name])}>{cut(`${kind.kind.toLowerCase()}/${name}`, 280)}</a> : cut(name, 260)}
        </h2>
        <button type="button" onClick={() => setAsked(asked + 1)}>
          Ask again
        </button>
      </header>
      {error && <p class="error">{cut(error, 600)}</p>}
      {!found && !error && <p class="empty">Looking …</p>}
      {found && (
        <>
          <p class="summary">{cut(found.summary, 600)}</p>
          {(found.findings?.length ?? 0) === 0 && <p class="empty">Nothing is wrong with it.</p>}
          <Scheduling explanation={found} />
          <Findings findings={found.findings ?? []} />
        </>
      )}
    </section>
  );
}
