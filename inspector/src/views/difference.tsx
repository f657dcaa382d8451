/** The difference between two states of an object, as lines of YAML. */
import { structuredPatch } from "diff";
import { useMemo } from "preact/hooks";
import { stringify } from "yaml";
import { cut } from "../format";
import { inOrder } from "../yaml_lines";

const LONGEST_CHANGE = 400;
const MOST_LINES = 2000;
/** Milliseconds of a comparison. */
const LONGEST = 500;
type Plain = Record<string, unknown>;

/** Lines that differ between two states of an object, with some context. */
export function Difference({ before, after }: { before: unknown; after: unknown }) {
  const patch = useMemo(() => structuredPatch("", "", comparable(before), comparable(after), "", "", { context: 3, timeout: LONGEST }), [before, after]);
  if (!patch) return <p class="empty">The states are too large to compare.</p>;
  const lines = patch.hunks.flatMap((hunk) => [`@@ ${hunk.oldStart} @@`, ...hunk.lines]);
  if (lines.length === 0) return <p class="empty">No difference.</p>;
  return (
    <pre class="diff" tabIndex={0}>
      {lines.slice(0, MOST_LINES).map((line, index) => (
        <span key={index} class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") ? "hunk" : ""}>
          {cut(line, LONGEST_CHANGE)}
          {"\n"}
        </span>
      ))}
      {lines.length > MOST_LINES && `… ${lines.length - MOST_LINES} more lines`}
    </pre>
  );
}

function comparable(value: unknown): string {
  if (value === null || value === undefined) return "";
  const { metadata, ...rest } = value as Plain;
  const { managedFields: _, resourceVersion: __, generation: ___, ...shown } = (metadata ?? {}) as Plain;
  return stringify(inOrder({ ...rest, metadata: shown }), { lineWidth: 0 });
}
