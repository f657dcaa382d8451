/** Two points of time on a scale of revisions, each with a slider, its number and its time. */
import { useState } from "preact/hooks";
import { ApiError } from "../api";
import { revisionOf } from "../exact";
import { ageOf, cut } from "../format";
import { revisionAt, timeAt, type Summary, type Write } from "../history";

export type Choose = (point: "from" | "to", revision: number) => void;

const MOST_MARKS = 400;

interface TimelineProps {
  readonly summary: Summary;
  readonly writes: readonly Write[];
  readonly from: number;
  readonly to: number;
  readonly choose: Choose;
}

export function Timeline({ summary, writes, from, to, choose }: TimelineProps) {
  const oldest = Number(summary.oldestRevision);
  const newest = Number(summary.newestRevision);
  const share = (revision: number) => `${newest > oldest ? ((revision - oldest) / (newest - oldest)) * 100 : 0}%`;
  const low = Math.min(from || to, to);
  return (
    <div class="timeline">
      <div class="marks" aria-hidden="true">
        {from > 0 && <i class="between" style={{ left: share(low), width: `calc(${share(Math.max(from, to))} - ${share(low)})` }} />}
        {writes.slice(0, MOST_MARKS).map((each) => (
          <i key={`${each.revision}${each.name}`} class={each.type.toLowerCase()} style={{ left: share(Number(each.revision)) }} />
        ))}
      </div>
      <Point name="to" title="Revision" summary={summary} writes={writes} value={to} choose={choose} />
      <Point name="from" title="Compare with" summary={summary} writes={writes} value={from} choose={choose} />
      {!summary.records && (
        <p class="note">
          This server records no times and no users of writes, only revisions up to its last compaction: it has no <code>--history</code>, stores in memory or etcd, or has several workers.
        </p>
      )}
    </div>
  );
}

interface PointProps {
  readonly name: "from" | "to";
  readonly title: string;
  readonly summary: Summary;
  readonly writes: readonly Write[];
  /** The chosen revision, 0 if none is chosen. */
  readonly value: number;
  readonly choose: Choose;
}

function Point({ name, title, summary, writes, value, choose }: PointProps) {
  const [dragged, setDragged] = useState(0);
  const [error, setError] = useState("");
  const newest = Number(summary.newestRevision);
  const shown = dragged || value;
  const time = shown ? timeAt(writes, shown) : "";
  const chosen = (revision: number) => {
    setDragged(0);
    setError("");
    choose(name, revision);
  };
  const atTime = async (text: string) => {
    const moment = new Date(text);
    if (Number.isNaN(moment.getTime())) return;
    try {
      chosen(await revisionAt(moment.toISOString()));
    } catch (problem) {
      setError(problem instanceof ApiError ? problem.message : String(problem));
    }
  };
  return (
    <div class="point" role="group" aria-label={title}>
      <span>{title}</span>
      <input
        type="range"
        aria-label={`${title}: slider`}
        aria-valuetext={shown ? `revision ${shown}${time ? `, ${time}` : ""}` : "none"}
        min={summary.oldestRevision}
        max={summary.newestRevision}
        value={shown || newest}
        class={shown ? "" : "unset"}
        onInput={(event) => setDragged(Number(event.currentTarget.value))}
        onChange={(event) => chosen(Number(event.currentTarget.value))}
      />
      <input type="number" aria-label={`${title}: number`} min={summary.oldestRevision} max={summary.newestRevision} value={shown || ""} placeholder="none" onChange={(event) => chosen(revisionOf(event.currentTarget.value))} />
      {summary.records && <input type="datetime-local" step="1" aria-label={`${title}: time`} onChange={(event) => void atTime(event.currentTarget.value)} />}
      <span class="count">
        {!shown ? "" : shown >= newest ? "now" : time ? `${ageOf(time)} ago` : ""}
        {name === "from" && value > 0 && (
          <button type="button" class="quiet" onClick={() => chosen(0)} aria-label="Compare no more">
            ✕
          </button>
        )}
        {name === "to" && value < newest && (
          <button type="button" class="quiet" onClick={() => chosen(newest)}>
            now
          </button>
        )}
      </span>
      {error && <p class="error">{cut(error, 300)}</p>}
    </div>
  );
}
