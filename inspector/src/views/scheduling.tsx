/** The scheduler's verdicts on a pod: nodes by reason, or scores of the best nodes. */
import { cut } from "../format";
import { formatAddress } from "../router";
import type { Explanation, Finding } from "./explanation";

interface GroupReason {
  readonly plugin: string;
  readonly text: string;
  readonly requested?: string;
  readonly shortBy?: string;
  readonly shortByMost?: string;
  readonly freeMost?: string;
  readonly notes?: readonly string[];
  readonly pods?: readonly string[];
}
interface Group {
  readonly count: number;
  readonly nodes: readonly string[];
  readonly reasons: readonly GroupReason[];
}
interface Score {
  readonly node: string;
  readonly total: number;
  readonly plugins: Readonly<Record<string, number>>;
}
interface Details {
  readonly groups?: readonly Group[];
  readonly scores?: readonly Score[];
}

const SHOWN = 12;

export function Scheduling({ explanation }: { explanation: Explanation }) {
  const details = (explanation.findings ?? []).map(detailsOf);
  const groups = details.flatMap((each) => each.groups ?? []);
  const scores = details.flatMap((each) => each.scores ?? []);
  return (
    <>
      {groups.length > 0 && <GroupTable groups={groups} />}
      {scores.length > 0 && <ScoreTable scores={scores} />}
    </>
  );
}

function detailsOf(finding: Finding): Details {
  const found = finding.details;
  return typeof found === "object" && found !== null ? (found as Details) : {};
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
            <th scope="col">Which</th>
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
                  {reason.shortByMost ? ` to ${reason.shortByMost}` : ""}
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

function ScoreTable({ scores }: { scores: readonly Score[] }) {
  const plugins = [...new Set(scores.flatMap((each) => Object.keys(each.plugins)))];
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
                <td key={plugin}>{score.plugins[plugin] ?? ""}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
