/** The editor: server-side apply or replacement, each with a dry run whose effect is shown as a diff. */
import { structuredPatch } from "diff";
import { parse, stringify } from "yaml";
import { useState } from "preact/hooks";
import { ApiError, k8s } from "../api";
import { cut } from "../format";
import type { KubernetesObject } from "./object";

type Mode = "apply" | "replace";
type Plain = Record<string, unknown>;

const MANAGER = "steersman-inspector";
const LONGEST_CHANGE = 400;
const MOST_LINES = 2000;

/** The text to edit: without what only the server writes. With `mode` replace the resourceVersion stays. */
export function editable(object: KubernetesObject, mode: Mode): string {
  const { status: _status, ...rest } = object as KubernetesObject & Plain;
  const metadata: Plain = { ...(rest.metadata as unknown as Plain) };
  for (const name of ["managedFields", "uid", "creationTimestamp", "generation", "selfLink"]) delete metadata[name];
  if (mode === "apply") delete metadata.resourceVersion;
  return stringify({ ...rest, metadata }, { lineWidth: 0 });
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

/** Lines that differ between two states of an object, with some context. */
export function Difference({ before, after }: { before: unknown; after: unknown }) {
  const patch = structuredPatch("", "", comparable(before), comparable(after), "", "", { context: 3, timeout: 2000 });
  if (!patch) return <p class="empty">The states are too large to compare.</p>;
  const lines = patch.hunks.flatMap((hunk) => [`@@ ${hunk.oldStart} @@`, ...hunk.lines]);
  if (lines.length === 0) return <p class="empty">nothing</p>;
  return (
    <pre class="diff" tabIndex={0}>
      {lines.slice(0, MOST_LINES).map((line, index) => (
        <span key={index} class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") ? "hunk" : ""}>
          {cut(line, LONGEST_CHANGE)}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

function comparable(value: unknown): string {
  if (value === null || value === undefined) return "";
  const { metadata, ...rest } = value as Plain;
  const { managedFields: _, resourceVersion: __, generation: ___, ...shown } = (metadata ?? {}) as Plain;
  return stringify({ ...rest, metadata: shown }, { lineWidth: 0 });
}
