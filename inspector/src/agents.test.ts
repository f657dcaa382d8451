import { describe, expect, it } from "vitest";
import { agentsOf } from "./agents";
import type { RequestLine } from "./views/requests";

function line(members: Partial<RequestLine>): RequestLine {
  return { id: "1", time: "2026-01-31T12:00:00Z", milliseconds: 2, code: 200, userAgent: "a", ...members };
}

describe("figures by user agent", () => {
  it("count reads, writes, failures and conflicts", () => {
    const lines = [line({ verb: "get" }), line({ verb: "list" }), line({ verb: "update", code: 409 }), line({ verb: "deletecollection" }), line({ verb: "create", code: 500, milliseconds: 9 })];
    const [agent] = agentsOf(lines);
    expect(agent).toMatchObject({ requests: 5, reads: 2, writes: 3, failed: 2, conflicts: 1, slowest: 9 });
  });

  it("count writes without a change, and lists without limit and selector", () => {
    const lines = [
      line({ verb: "patch", unchanged: true }),
      line({ verb: "patch", unchanged: false }),
      line({ verb: "list", limited: false }),
      line({ verb: "list", limited: true }),
      line({ verb: "watch", limited: false, milliseconds: 60_000 }),
    ];
    const [agent] = agentsOf(lines);
    expect(agent).toMatchObject({ unchanged: 1, unlimited: 1, slowest: 2 });
  });

  it("are unknown where the server does not tell", () => {
    const [agent] = agentsOf([line({ verb: "patch" }), line({ verb: "list" })]);
    expect(agent).toMatchObject({ unchanged: null, unlimited: null });
  });

  it("are sorted by requests, and long names are cut", () => {
    const found = agentsOf([line({ userAgent: "b".repeat(10_000) }), line({}), line({})]);
    expect(found.map((each) => [each.name.length, each.requests])).toEqual([
      [1, 2],
      [200, 1],
    ]);
  });
});
