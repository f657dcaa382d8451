/** What-if: where the pods of some manifests would go. Nothing is written. */
import { useState } from "preact/hooks";
import { ApiError, request } from "../api";
import { cut } from "../format";
import { formatAddress } from "../router";
import { Findings, type Explanation } from "./explanation";

interface Outcome {
  readonly pod: string;
  readonly namespace: string;
  readonly node?: string;
  readonly victims?: readonly string[];
  readonly message?: string;
  readonly explanation?: Explanation;
}
interface WhatIfResult {
  readonly pods: readonly Outcome[];
}

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
  const [found, setFound] = useState<WhatIfResult | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const ask = async () => {
    setBusy(true);
    setError("");
    setFound(null);
    try {
      setFound(await request<WhatIfResult>("/what-if", { method: "POST", type: "application/yaml", body: text }));
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
      {found && (
        <ul class="outcomes" role="status">
          {found.pods.slice(0, 200).map((each, index) => (
            <li key={index}>
              <b>{cut(`${each.namespace}/${each.pod}`, 200)}</b>{" "}
              {each.node ? (
                <>
                  → <a href={formatAddress(["objects", "nodes", "-", each.node])}>{cut(each.node, 100)}</a>
                </>
              ) : (
                <span class="warn">stays pending: {cut(each.message ?? "", 600)}</span>
              )}
              {each.victims && each.victims.length > 0 && <span class="bad"> pushes out {cut(each.victims.join(", "), 400)}</span>}
              {each.explanation?.findings && <Findings findings={each.explanation.findings} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
