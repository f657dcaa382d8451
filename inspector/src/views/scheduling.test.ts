import { describe, expect, it } from "vitest";
import { decisionsOf, placementOf } from "./scheduling";

const FINDING = { severity: "error", message: "does not fit" } as const;

describe("details of findings", () => {
  it("are a placement where the reason is about a node", () => {
    const details = { nodes: 3, groups: [], scores: [{ node: "a", total: 7, byPlugin: { ImageLocality: 7 } }] };
    expect(placementOf({ ...FINDING, reason: "Unschedulable", details })).toEqual(details);
    expect(placementOf({ ...FINDING, reason: "Terminating", details })).toBeUndefined();
    expect(placementOf({ ...FINDING, reason: "Placed", details: null })).toBeUndefined();
    expect(placementOf({ ...FINDING, reason: "Placed", details: "text" })).toBeUndefined();
    expect(placementOf({ ...FINDING, reason: "Placed" })).toBeUndefined();
  });

  it("are decisions where the server keeps them", () => {
    const decisions = [{ result: "Unschedulable", message: "0/3 nodes are available", count: 2 }];
    expect(decisionsOf({ ...FINDING, reason: "LastDecisions", details: { decisions } })).toEqual(decisions);
    expect(decisionsOf({ ...FINDING, reason: "LastDecisions", details: { decisions: "x" } })).toEqual([]);
    expect(decisionsOf({ ...FINDING, reason: "Placed", details: { decisions } })).toEqual([]);
  });
});
