import { describe, expect, it } from "vitest";
import { kindNamed, kindsOf, pathOf } from "./discovery";

const VERBS = ["get", "list", "watch"];
const GROUPS = [
  { metadata: {}, versions: [{ version: "v1", resources: [{ resource: "pods", responseKind: { kind: "Pod" }, scope: "Namespaced", verbs: VERBS, shortNames: ["po"] }, { resource: "bindings", responseKind: { kind: "Binding" }, scope: "Namespaced", verbs: ["create"] }] }] },
  {
    metadata: { name: "example.com" },
    versions: [
      { version: "v2", resources: [{ resource: "widgets", responseKind: { kind: "Widget" }, scope: "Cluster", verbs: VERBS }] },
      { version: "v1", resources: [{ resource: "widgets", responseKind: { kind: "Widget" }, scope: "Cluster", verbs: VERBS }] },
    ],
  },
];

describe("kinds", () => {
  const kinds = kindsOf(GROUPS);

  it("are those that can be listed, in the preferred version", () => {
    expect(kinds.map((kind) => `${kind.id} ${kind.version}`)).toEqual(["pods v1", "widgets.example.com v2"]);
  });

  it("have paths with encoded names", () => {
    expect(pathOf(kinds[0]!, "a", "b/../c")).toBe("/api/v1/namespaces/a/pods/b%2F..%2Fc");
    expect(pathOf(kinds[0]!)).toBe("/api/v1/pods");
    expect(pathOf(kinds[1]!, "ignored", "x")).toBe("/apis/example.com/v2/widgets/x");
  });

  it("are found by apiVersion and kind", () => {
    expect(kindNamed(kinds, "example.com/v1", "Widget")?.id).toBe("widgets.example.com");
    expect(kindNamed(kinds, "v1", "Widget")).toBeUndefined();
  });
});
