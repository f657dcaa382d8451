/** What-if: where the pods of some manifests would go. Nothing is written. */
import { useState } from "preact/hooks";
import { ApiError, request } from "../api";
import { cut } from "../format";
import { formatAddress } from "../router";
import { NamespaceChoice } from "../namespaces";
import { ObjectLink, Unread, type Reference } from "./explanation";
import { GroupTable, type Group } from "./scheduling";

/** Place of one pod: its node, or the reason why it has none. */
interface PlannedPod {
  readonly pod: Reference;
  /** Object of the manifests that the pod comes from. */
  readonly source: Reference;
  readonly node?: string;
  readonly pushesOut?: readonly Reference[];
  readonly reason?: string;
  readonly message?: string;
  readonly groups?: readonly Group[];
}
/** Places of all pods of some manifests, in the order in which they were placed. */
interface Plan {
  readonly pods?: readonly PlannedPod[];
  /** Pods of the cluster whose workload is in the manifests: the new ones take their place. */
  readonly replaced?: readonly Reference[];
  readonly unread?: readonly string[];
}

const MOST = 200;
const SHOWN = 20;
const EXAMPLE = `apiVersion: v1
kind: Pod
metadata: {name: trial}
spec:
  containers:
  - name: main
    image: app
    resources: {requests: {cpu: 500m, memory: 256Mi}}
`;

export function WhatIf() {
  const [text, setText] = useState(EXAMPLE);
  const [namespace, setNamespace] = useState("default");
  const [found, setFound] = useState<Plan | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const ask = async () => {
    setBusy(true);
    setError("");
    setFound(null);
    try {
      setFound(await request<Plan>(`/what-if?${new URLSearchParams({ namespace }).toString()}`, { method: "POST", type: "application/yaml", body: text }));
    } catch (problem) {
      setError(problem instanceof ApiError ? problem.message : String(problem));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="panel what-if" aria-label="What if">
      <header>
        <h2>What if</h2>
        <span class="count">where these pods would go; nothing is written</span>
        <label>
          Namespace{" "}
          <NamespaceChoice value={namespace} change={setNamespace} />
        </label>
      </header>
      <textarea aria-label="Manifests" spellcheck={false} rows={Math.min(30, text.split("\n").length + 1)} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="actions">
        <button type="button" class="primary" onClick={() => void ask()} disabled={busy}>
          Try
        </button>
      </div>
      {error && (
        <p class="error" role="alert">
          {cut(error, 600)}
        </p>
      )}
      {found && <Places plan={found} />}
    </section>
  );
}

function Places({ plan }: { plan: Plan }) {
  const pods = plan.pods ?? [];
  const placed = pods.filter((each) => each.node).length;
  return (
    <div role="status">
      <p class="summary">{pods.length === 0 ? "The manifests have no pods." : `${placed} of ${pods.length} pods would get a node.`}</p>
      <ul class="outcomes">
        {pods.slice(0, MOST).map((each, index) => (
          <li key={index}>
            <b>{cut(`${each.pod.namespace ?? ""}/${each.pod.name ?? ""}`, 200)}</b>{" "}
            {each.source.kind !== "Pod" && <small>of {cut(`${(each.source.kind ?? "").toLowerCase()}/${each.source.name ?? ""}`, 200)} </small>}
            {each.node ? (
              <>
                → <a href={formatAddress(["objects", "nodes", "-", each.node])}>{cut(each.node, 100)}</a>
              </>
            ) : (
              <span class="warn">stays pending: {cut(each.reason ?? "", 600)}</span>
            )}
            {each.pushesOut && each.pushesOut.length > 0 && (
              <span class="bad">
                {" "}
                pushes out <References objects={each.pushesOut} />
              </span>
            )}
            {each.groups && each.groups.length > 0 && <GroupTable groups={each.groups} />}
          </li>
        ))}
      </ul>
      {pods.length > MOST && <p class="empty">and {pods.length - MOST} more</p>}
      {plan.replaced && plan.replaced.length > 0 && (
        <p>
          In place of <References objects={plan.replaced} />.
        </p>
      )}
      <Unread resources={plan.unread} />
    </div>
  );
}

function References({ objects }: { objects: readonly Reference[] }) {
  return (
    <>
      {objects.slice(0, SHOWN).map((each, index) => (
        <span key={index}>
          {index > 0 && ", "}
          <ObjectLink object={each} />
        </span>
      ))}
      {objects.length > SHOWN && ` and ${objects.length - SHOWN} more`}
    </>
  );
}
