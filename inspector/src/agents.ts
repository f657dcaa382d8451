/** Figures of requests by user agent. */
import type { RequestLine } from "./views/requests";

export interface Agent {
  readonly name: string;
  requests: number;
  reads: number;
  writes: number;
  failed: number;
  conflicts: number;
  /** Writes that left the object as it was; null if the server does not tell. */
  unchanged: number | null;
  /** Lists without a limit and without a selector; null if the server does not tell. */
  unlimited: number | null;
  slowest: number;
}

const WRITES = new Set(["create", "update", "patch", "delete", "deletecollection"]);
const LONGEST = 200;

/** Return the figures of all user agents in `lines`, that with the most requests first. */
export function agentsOf(lines: readonly RequestLine[]): Agent[] {
  const found = new Map<string, Agent>();
  for (const line of lines) {
    const name = (line.userAgent ?? "").slice(0, LONGEST);
    let agent = found.get(name);
    if (!agent) {
      agent = { name, requests: 0, reads: 0, writes: 0, failed: 0, conflicts: 0, unchanged: null, unlimited: null, slowest: 0 };
      found.set(name, agent);
    }
    count(agent, line);
  }
  return [...found.values()].sort((a, b) => b.requests - a.requests || a.name.localeCompare(b.name));
}

function count(agent: Agent, line: RequestLine): void {
  const code = line.code ?? 0;
  agent.requests++;
  if (WRITES.has(line.verb ?? "")) {
    agent.writes++;
    if (line.unchanged !== undefined) agent.unchanged = (agent.unchanged ?? 0) + (line.unchanged ? 1 : 0);
  } else agent.reads++;
  if (code >= 400) agent.failed++;
  if (code === 409) agent.conflicts++;
  if (line.verb === "list" && line.limited !== undefined) agent.unlimited = (agent.unlimited ?? 0) + (line.limited ? 0 : 1);
  if (line.verb !== "watch") agent.slowest = Math.max(agent.slowest, line.milliseconds);
}
