/** Figures of requests by user agent. */
import type { RequestLine } from "./views/requests";

export interface Agent {
  readonly name: string;
  requests: number;
  reads: number;
  writes: number;
  failed: number;
  conflicts: number;
  /** Writes that left the object as it was. */
  unchanged: number;
  /** Lists without a limit and without a selector. */
  unlimited: number;
  slowest: number;
}

const READS = new Set(["get", "list", "watch"]);
const LONGEST = 200;

export function agentsOf(lines: readonly RequestLine[]): Agent[] {
  const found = new Map<string, Agent>();
  for (const line of lines) {
    const name = (line.userAgent ?? "").slice(0, LONGEST);
    let agent = found.get(name);
    if (!agent) {
      agent = { name, requests: 0, reads: 0, writes: 0, failed: 0, conflicts: 0, unchanged: 0, unlimited: 0, slowest: 0 };
      found.set(name, agent);
    }
    agent.requests++;
    if (READS.has(line.verb ?? "")) agent.reads++;
    else agent.writes++;
    if ((line.code ?? 0) >= 400) agent.failed++;
    if (line.code === 409) agent.conflicts++;
    if (line.unchanged) agent.unchanged++;
    if (line.verb === "list" && line.limited === false) agent.unlimited++;
    if (line.verb !== "watch") agent.slowest = Math.max(agent.slowest, line.milliseconds);
  }
  return [...found.values()].sort((a, b) => b.requests - a.requests);
}
