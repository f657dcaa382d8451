import { describe, expect, it } from "vitest";
import { exactQuery, revisionOf } from "./exact";
import { changedBetween, changeText, isStatus, mergedWrites, timeAt, verbOf, type Write } from "./history";

function write(revision: number, members: Partial<Write> = {}): Write {
  return { revision: String(revision), type: "MODIFIED", namespace: "default", name: "web", ...members };
}

describe("writes", () => {
  it("are merged, the newest first, each once", () => {
    const found = mergedWrites([write(9), write(100)], [write(9), write(20), write(100, { name: "other" })]);
    expect(found.map((each) => `${each.revision} ${each.name}`)).toEqual(["100 web", "100 other", "20 web", "9 web"]);
  });

  it("give the time of a revision between them", () => {
    const writes = [write(100, { time: "c" }), write(20, { time: "b" }), write(9, { time: "a" })];
    expect([8, 9, 19, 20, 500].map((revision) => timeAt(writes, revision))).toEqual(["", "a", "a", "b", "c"]);
  });

  it("have a verb, or the type of the event", () => {
    expect(verbOf(write(1, { verb: "patch", subresource: "scale" }))).toBe("patch scale");
    expect(verbOf(write(1, { verb: "create" }))).toBe("create");
    expect(verbOf(write(1, { type: "DELETED" }))).toBe("deleted");
  });

  it("of status are known by subresource or by their changes", () => {
    const change = { path: ".status.phase", op: "changed" } as const;
    expect(isStatus(write(1, { verb: "update", subresource: "status" }))).toBe(true);
    expect(isStatus(write(1, { changes: [change] }))).toBe(true);
    expect(isStatus(write(1, { changes: [change, { path: ".spec.replicas", op: "changed" }] }))).toBe(false);
    expect(isStatus(write(1, { verb: "update", changes: [change] }))).toBe(false);
    expect(isStatus(write(1))).toBe(false);
  });

  it("have changes as one line each", () => {
    expect(changeText({ path: ".spec.replicas", op: "changed", from: 1, to: 3 })).toBe(".spec.replicas: 1 → 3");
    expect(changeText({ path: ".a", op: "added", to: { b: "x" }, truncated: true })).toBe('.a: + {"b":"x"} …');
    expect(changeText({ path: ".a", op: "removed", from: "y" })).toBe('.a: − "y"');
    expect(changeText({ path: ".a", op: "ordered" })).toBe(".a: another order");
  });
});

describe("two states of a collection", () => {
  it("differ by name, version and uid", () => {
    const item = (name: string, resourceVersion: string, uid = name) => ({ metadata: { name, namespace: "default", uid, resourceVersion } });
    const before = [item("same", "1"), item("changed", "2"), item("gone", "3"), item("replaced", "4", "u1")];
    const after = [item("same", "1"), item("changed", "5"), item("new", "6"), item("replaced", "4", "u2")];
    expect(changedBetween(before, after).map((each) => `${each.type} ${each.name}`)).toEqual(["changed changed", "removed gone", "added new", "changed replaced"]);
  });
});

describe("lists as of a revision", () => {
  it("name the revision on the first page alone", () => {
    expect(exactQuery(42)).toBe("?limit=500&resourceVersion=42&resourceVersionMatch=Exact");
    expect(exactQuery(42, "token", { fieldSelector: "metadata.name=a" })).toBe("?fieldSelector=metadata.name%3Da&limit=500&continue=token");
  });

  it("have no revision where the address has no number", () => {
    expect(["42", "0", "-1", "1e3", "x", "", undefined].map(revisionOf)).toEqual([42, 0, 0, 0, 0, 0, 0]);
  });
});
