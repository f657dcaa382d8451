/** The scheduler's verdicts on a pod: nodes by reason, or scores of the best nodes. */
import { ageOf, cut } from "../format";
import { formatAddress } from "../router";
import { ObjectLink, Unread, type Explanation, type Finding, type Reference } from "./explanation";

/** Reason that all nodes of a group have, with the amounts of all of them. */
interface GroupReason {
  readonly plugin: string;
  /** Words for people, without amounts; `message` is the text of the scheduler. */
  readonly text: string;
  readonly message?: string;
  readonly resource?: string;
  readonly requested?: string;
  readonly shortBy?: string;
  readonly shortByMost?: string;
  readonly freeMost?: string;
  readonly notes?: readonly string[];
  readonly pods?: readonly string[];
}
/** Nodes that do not take a pod for the same reasons; at most 50 of them are named. */
export interface Group {
  readonly count: number;
  readonly nodes: readonly string[];
  readonly reasons: readonly GroupReason[];
}
interface Score {
  readonly node: string;
  readonly total: number;
  readonly byPlugin?: Readonly<Record<string, number>>;
}
interface Preemption {
  readonly node?: string;
  readonly victims?: readonly Reference[];
  readonly refused?: string;
}
/** Details of a finding about the node of a pod. */
export interface PlacementDetails {
  /** Number of nodes, and of those on which the pod fits. */
  readonly nodes: number;
  readonly feasible?: number;
  /** Message that the scheduler has for the pod now. */
  readonly message?: string;
  readonly groups?: readonly Group[];
  readonly preemption?: Preemption;
  readonly scores?: readonly Score[];
  readonly unread?: readonly string[];
}

const SHOWN = 12;
const REASONS = new Set(["Unschedulable", "SchedulingGated", "NotDecided", "Placed"]);

/** Return the details of a finding that is about a pod's node, undefined for other findings. */
export function placementOf(finding: Finding): PlacementDetails | undefined {
  const found = finding.details;
  if (!REASONS.has(finding.reason) || typeof found !== "object" || found === null) return undefined;
  return typeof (found as Partial<PlacementDetails>).nodes === "number" ? (found as PlacementDetails) : undefined;
}

/** A decision of the scheduler that the server has kept. */
interface Decision {
  /** `Scheduled`, or a reason such as `Unschedulable`. */
  readonly result: string;
  readonly time?: string;
  /** Equal decisions in a row. */
  readonly count?: number;
  readonly node?: string;
  readonly message?: string;
}

/** Return the decisions in the details of a finding, none for other findings. */
export function decisionsOf(finding: Finding): readonly Decision[] {
  const found = finding.details as { readonly decisions?: unknown } | null | undefined;
  return finding.reason === "LastDecisions" && Array.isArray(found?.decisions) ? (found.decisions as Decision[]) : [];
}

export function Scheduling({ explanation }: { explanation: Explanation }) {
  const findings = explanation.findings ?? [];
  const found = findings.map(placementOf).filter((each) => each !== undefined);
  const decisions = findings.flatMap(decisionsOf);
  return (
    <>
      {decisions.length > 0 && <DecisionTable decisions={decisions} />}
      {found.map((each, index) => (
        <Placement key={index} details={each} />
      ))}
    </>
  );
}

function Placement({ details }: { details: PlacementDetails }) {
  const { groups = [], scores = [], preemption, message } = details;
  return (
    <div class="placement">
      {groups.length > 0 && <GroupTable groups={groups} />}
      {scores.length > 0 && <ScoreTable scores={scores} />}
      {preemption?.victims && preemption.victims.length > 0 && (
        <p>
          Preemption would push out{" "}
          {preemption.victims.slice(0, SHOWN).map((each, index) => (
            <span key={index}>
              {index > 0 && ", "}
              <ObjectLink object={each} />
            </span>
          ))}
          {preemption.victims.length > SHOWN && ` and ${preemption.victims.length - SHOWN} more`} on <NodeLinks nodes={[preemption.node ?? ""]} count={1} />.
        </p>
      )}
      {preemption?.refused && <p class="quiet">Preemption: {cut(preemption.refused, 600)}</p>}
      {message && <p class="quiet">Scheduler: {cut(message, 2000)}</p>}
      <Unread resources={details.unread} />
    </div>
  );
}

function NodeLinks({ nodes, count }: { nodes: readonly string[]; count: number }) {
  return (
    <>
      {nodes.slice(0, SHOWN).map((node, index) => (
        <span key={node}>
          {index > 0 && ", "}
          <a href={formatAddress(["objects", "nodes", "-", node])}>{cut(node, 80)}</a>
        </span>
      ))}
      {count > Math.min(nodes.length, SHOWN) && ` and ${count - Math.min(nodes.length, SHOWN)} more`}
    </>
  );
}

export function GroupTable({ groups }: { groups: readonly Group[] }) {
  return (
    <div class="scroll">
      <table class="figures">
        <caption>Nodes that do not take the pod, by reason</caption>
        <thead>
          <tr>
            <th scope="col">Nodes</th>
            <th scope="col">Plugin</th>
            <th scope="col">Reason</th>
            <th scope="col">Short by</th>
            <th scope="col">Names</th>
          </tr>
        </thead>
        <tbody>
          {groups.map((group, index) =>
            group.reasons.map((reason, number) => (
              <tr key={`${index}-${number}`}>
                {number === 0 && <td rowSpan={group.reasons.length}>{group.count}</td>}
                <td>{reason.plugin}</td>
                <td>
                  {cut(reason.text, 300)}
                  {reason.pods && reason.pods.length > 0 && <small> ({cut(reason.pods.join(", "), 200)})</small>}
                  {reason.notes && reason.notes.length > 0 && <small> ({cut(reason.notes.join(", "), 200)})</small>}
                </td>
                <td>
                  {reason.shortBy}
                  {reason.shortByMost && ` to ${reason.shortByMost}`}
                  {reason.shortBy && (
                    <small>
                      {" "}
                      of {reason.requested}, at most {reason.freeMost || "0"} free
                    </small>
                  )}
                </td>
                {number === 0 && (
                  <td rowSpan={group.reasons.length}>
                    <NodeLinks nodes={group.nodes} count={group.count} />
                  </td>
                )}
              </tr>
            )),
          )}
        </tbody>
      </table>
    </div>
  );
}

function DecisionTable({ decisions }: { decisions: readonly Decision[] }) {
  return (
    <div class="scroll">
      <table class="figures">
        <caption>Last decisions of the scheduler</caption>
        <thead>
          <tr>
            <th scope="col">Since</th>
            <th scope="col">Decision</th>
            <th scope="col">Node or reason</th>
          </tr>
        </thead>
        <tbody>
          {decisions.map((each, index) => (
            <tr key={index}>
              <td>
                <time dateTime={each.time} title={each.time}>
                  {ageOf(each.time)}
                </time>
              </td>
              <td>
                {cut(each.result, 60)}
                {(each.count ?? 1) > 1 && <small> ×{each.count}</small>}
              </td>
              <td>{each.node ? <NodeLinks nodes={[each.node]} count={1} /> : cut(each.message ?? "", 600)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ScoreTable({ scores }: { scores: readonly Score[] }) {
  const plugins = [...new Set(scores.flatMap((each) => Object.keys(each.byPlugin ?? {})))];
  return (
    <div class="scroll">
      <table class="figures">
        <caption>Scores of the best nodes, as if the pod were placed now</caption>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Total</th>
            {plugins.map((plugin) => (
              <th scope="col" key={plugin}>
                {plugin}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {scores.slice(0, SHOWN).map((score) => (
            <tr key={score.node}>
              <th scope="row">
                <a href={formatAddress(["objects", "nodes", "-", score.node])}>{cut(score.node, 80)}</a>
              </th>
              <td>{score.total}</td>
              {plugins.map((plugin) => (
                <td key={plugin}>{score.byPlugin?.[plugin] ?? 0}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
