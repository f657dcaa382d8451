/** Explanations: findings about an object, with evidence and suggestions. */
import { useKinds } from "../kinds";
import { cut } from "../format";
import { objectAddress } from "./events";

export interface Reference {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
}
export interface Evidence {
  readonly object: Reference;
  readonly field?: string;
  readonly value?: unknown;
  readonly event?: string;
  readonly message?: string;
  readonly count?: number;
  readonly lastSeen?: string;
}
export interface Suggestion {
  readonly text: string;
  readonly command?: string;
  readonly patch?: unknown;
  readonly manifest?: string;
  readonly verified?: boolean;
}
export type Severity = "error" | "warning" | "unknown" | "note";
export interface Finding {
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  readonly evidence?: readonly Evidence[];
  readonly suggestions?: readonly Suggestion[];
  readonly because?: readonly Finding[];
  readonly details?: unknown;
}
export interface Explanation {
  readonly subject: Reference;
  readonly summary: string;
  readonly findings?: readonly Finding[];
}

const LONGEST = 600;
const MOST = 50;

export function ObjectLink({ object }: { object: Reference }) {
  const kinds = useKinds();
  const text = `${(object.kind ?? "").toLowerCase()}/${object.name ?? ""}`;
  const where = objectAddress(kinds, object.apiVersion ?? "v1", object.kind ?? "", object.namespace ?? "", object.name ?? "");
  return where ? <a href={where}>{cut(text, 160)}</a> : <span>{cut(text, 160)}</span>;
}

/** Resources that could not be read, and count as if they had no objects. */
export function Unread({ resources }: { resources: readonly string[] | undefined }) {
  if (!resources || resources.length === 0) return null;
  return (
    <details class="note">
      <summary>{resources.length === 1 ? "One kind could not be read" : `${resources.length} kinds could not be read`}</summary>
      <ul class="evidence">
        {resources.slice(0, MOST).map((each) => (
          <li key={each}>{cut(each, LONGEST)}</li>
        ))}
      </ul>
    </details>
  );
}

export function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul class="findings">
      {findings.slice(0, MOST).map((finding, index) => (
        <li key={index} class={`finding ${finding.severity}`}>
          <p>
            <span class={`badge ${finding.severity}`}>{finding.severity}</span> {cut(finding.message, LONGEST)}
          </p>
          {finding.because && finding.because.length > 0 && <Findings findings={finding.because} />}
          {finding.suggestions?.slice(0, MOST).map((each, number) => <SuggestionItem key={number} suggestion={each} />)}
          {finding.evidence && finding.evidence.length > 0 && (
            <details>
              <summary>Evidence</summary>
              <ul class="evidence">
                {finding.evidence.slice(0, MOST).map((each, number) => (
                  <li key={number}>
                    <ObjectLink object={each.object} /> {each.field && <code>{cut(each.field, 200)}</code>}{" "}
                    {each.field && <code>{cut(JSON.stringify(each.value ?? null), LONGEST)}</code>}
                    {each.event && (
                      <>
                        <b>{cut(each.event, 60)}</b> {cut(each.message ?? "", LONGEST)}
                        {(each.count ?? 1) > 1 && <small> ×{each.count}</small>}
                      </>
                    )}
                  </li>
                ))}
              </ul>
            </details>
          )}
        </li>
      ))}
      {findings.length > MOST && <li class="empty">and {findings.length - MOST} more</li>}
    </ul>
  );
}

function SuggestionItem({ suggestion }: { suggestion: Suggestion }) {
  return (
    <div class="suggestion">
      <p>
        <span aria-hidden="true">→ </span>
        {cut(suggestion.text, LONGEST)} {suggestion.verified && <span class="badge ok">verified</span>}
      </p>
      {suggestion.command && <Copied text={suggestion.command} />}
      {suggestion.manifest && <Copied text={suggestion.manifest} />}
    </div>
  );
}

export function Copied({ text }: { text: string }) {
  return (
    <div class="copied">
      <pre tabIndex={0}>{cut(text, 8000)}</pre>
      <button type="button" onClick={() => void navigator.clipboard.writeText(text)}>
        Copy
      </button>
    </div>
  );
}
