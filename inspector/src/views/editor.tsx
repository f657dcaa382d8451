/** The editor: server-side apply or replacement, each with a dry run whose effect is shown as a diff. */
import { parse, stringify } from "yaml";
import { useState } from "preact/hooks";
import { ApiError, k8s } from "../api";
import { cut } from "../format";
import { inOrder } from "../yaml_lines";
import { Difference } from "./difference";
import type { KubernetesObject } from "./object";

type Mode = "apply" | "replace";
type Plain = Record<string, unknown>;

const MANAGER = "steersman-inspector";

/** The text to edit: without what only the server writes. With `mode` replace the resourceVersion stays. */
export function editable(object: KubernetesObject, mode: Mode): string {
  const { status: _status, ...rest } = object as KubernetesObject & Plain;
  const metadata: Plain = { ...(rest.metadata as unknown as Plain) };
  for (const name of ["managedFields", "uid", "creationTimestamp", "generation", "selfLink"]) delete metadata[name];
  if (mode === "apply") delete metadata.resourceVersion;
  return stringify(inOrder({ ...rest, metadata }), { lineWidth: 0 });
}

export function Editor({ path, object }: { path: string; object: KubernetesObject }) {
  const [mode, setMode] = useState<Mode>("apply");
  const [text, setText] = useState(() => editable(object, "apply"));
  const [force, setForce] = useState(false);
  const [result, setResult] = useState<{ before: KubernetesObject; after: KubernetesObject; dry: boolean } | null>(null);
  const [error, setError] = useState<ApiError | Error | null>(null);
  const [busy, setBusy] = useState(false);
  const send = async (dry: boolean) => {
    setBusy(true);
    setError(null);
    setResult(null);
    try {
      const document: unknown = parse(text, { maxAliasCount: 100 });
      const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict" });
      if (dry) query.set("dryRun", "All");
      if (mode === "apply" && force) query.set("force", "true");
      const after = await k8s<KubernetesObject>(`${path}?${query.toString()}`, {
        method: mode === "apply" ? "PATCH" : "PUT",
        type: mode === "apply" ? "application/apply-patch+yaml" : "application/json",
        body: JSON.stringify(document),
      });
      setResult({ before: object, after, dry });
    } catch (problem) {
      setError(problem as Error);
    } finally {
      setBusy(false);
    }
  };
  const change = (next: Mode) => {
    setMode(next);
    setText(editable(object, next));
    setResult(null);
    setError(null);
  };
  const conflict = error instanceof ApiError && error.code === 409;
  return (
    <div class="editor">
      <fieldset>
        <legend class="visually-hidden">Way of writing</legend>
        <label class="check">
          <input type="radio" name="mode" checked={mode === "apply"} onChange={() => change("apply")} /> apply (owns what stands here; leaves the rest)
        </label>
        <label class="check">
          <input type="radio" name="mode" checked={mode === "replace"} onChange={() => change("replace")} /> replace (what is not here is removed)
        </label>
        {mode === "apply" && (
          <label class="check">
            <input type="checkbox" checked={force} onChange={(event) => setForce(event.currentTarget.checked)} /> take over fields of other managers
          </label>
        )}
      </fieldset>
      <textarea aria-label="Object as YAML" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} rows={Math.min(40, text.split("\n").length + 1)} />
      <div class="actions">
        <button type="button" onClick={() => void send(true)} disabled={busy}>
          Dry run
        </button>
        <button type="button" class="primary" onClick={() => void send(false)} disabled={busy}>
          {mode === "apply" ? "Apply" : "Replace"}
        </button>
        <button type="button" onClick={() => change(mode)} disabled={busy}>
          Reset
        </button>
      </div>
      {error && (
        <div class="error" role="alert">
          <p>{cut(error.message, 4000)}</p>
          {conflict && mode === "apply" && <p>Choose “take over fields of other managers” to own them from now on.</p>}
          {conflict && mode === "replace" && <p>The object has changed meanwhile: “Reset” loads it anew.</p>}
        </div>
      )}
      {result && (
        <div role="status">
          <p>{result.dry ? "The dry run would change:" : "Written:"}</p>
          <Difference before={result.before} after={result.after} />
        </div>
      )}
    </div>
  );
}
