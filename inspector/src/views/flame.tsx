/** The steps of a request as a flame chart, and as a tree for those who read or hear it. */
import { useState } from "preact/hooks";
import { cut, milliseconds } from "../format";

export interface Step {
  readonly name: string;
  readonly start: number;
  readonly milliseconds: number;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly events?: ReadonlyArray<{ readonly name: string; readonly at: number; readonly attributes?: Readonly<Record<string, unknown>> }>;
  readonly steps?: readonly Step[];
}
export interface TraceDocument {
  readonly id: string;
  readonly time: string;
  readonly milliseconds: number;
  readonly dropped?: number;
  readonly steps: readonly Step[];
  readonly [fact: string]: unknown;
}

export interface Bar {
  readonly step: Step;
  readonly depth: number;
  /** Left edge and width as shares of the whole, 0 to 1. */
  readonly left: number;
  readonly width: number;
}

const FACTS = ["verb", "path", "code", "user", "userAgent", "bytes"];
const MOST = 500;

/** Place all steps: the depth by nesting, left edge and width by time. */
export function barsOf(steps: readonly Step[], total: number): Bar[] {
  const bars: Bar[] = [];
  const place = (step: Step, depth: number) => {
    if (bars.length >= MOST) return;
    const left = total > 0 ? Math.min(1, Math.max(0, step.start / total)) : 0;
    const width = total > 0 ? Math.min(1 - left, Math.max(0, step.milliseconds / total)) : 0;
    bars.push({ step, depth, left, width });
    for (const below of step.steps ?? []) place(below, depth + 1);
  };
  for (const step of steps) place(step, 0);
  return bars;
}

export function Flame({ trace }: { trace: TraceDocument }) {
  const [chosen, setChosen] = useState(-1);
  const bars = barsOf(trace.steps, trace.milliseconds);
  const step = bars[chosen]?.step;
  return (
    <div class="flame">
      <dl class="facts">
        {FACTS.filter((name) => trace[name] !== undefined && trace[name] !== "").map((name) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{cut(String(trace[name]), 300)}</dd>
          </div>
        ))}
        <div>
          <dt>took</dt>
          <dd>{milliseconds(trace.milliseconds / 1000)}</dd>
        </div>
      </dl>
      <ol class="bars">
        {bars.map((bar, index) => (
          <li key={index}>
            <button type="button" aria-pressed={index === chosen} onClick={() => setChosen(index === chosen ? -1 : index)}>
              <span class="name" style={{ paddingLeft: `${bar.depth * 14}px` }}>
                {cut(bar.step.name, 80)}
              </span>
              <span class="track" aria-hidden="true">
                <i class={`depth-${bar.depth % 4}`} style={{ left: `${bar.left * 100}%`, width: `max(2px, ${bar.width * 100}%)` }} />
              </span>
              <span class="took">{milliseconds(bar.step.milliseconds / 1000)}</span>
            </button>
          </li>
        ))}
      </ol>
      {step && (
        <dl class="facts attributes">
          {Object.entries(step.attributes ?? {}).map(([name, value]) => (
            <div key={name}>
              <dt>{cut(name, 80)}</dt>
              <dd>{cut(typeof value === "string" ? value : JSON.stringify(value), 1000)}</dd>
            </div>
          ))}
          {step.events?.map((event, index) => (
            <div key={index}>
              <dt>{milliseconds(event.at / 1000)}</dt>
              <dd>
                {cut(event.name, 200)} {event.attributes && cut(JSON.stringify(event.attributes), 500)}
              </dd>
            </div>
          ))}
          {!step.attributes && !step.events && <p class="empty">This step has no attributes.</p>}
        </dl>
      )}
      {(trace.dropped ?? 0) > 0 && <p class="note">{trace.dropped} further steps were not recorded.</p>}
    </div>
  );
}
