import { describe, expect, it } from "vitest";
import { Owners, type ManagedFields } from "./owners";

const OBJECT = {
  metadata: { labels: { app: "web" }, finalizers: ["example.com/keep"] },
  spec: { replicas: 3, selector: { matchLabels: { app: "web" } }, containers: [{ name: "a", image: "x" }, { name: "b", image: "y" }], args: ["p", "q"] },
  status: { replicas: 3, conditions: [{ type: "Ready", status: "True" }, { type: "PodScheduled", status: "True", observedGeneration: 1 }] },
};

function entry(manager: string, fieldsV1: object, subresource = ""): ManagedFields {
  return { manager, operation: "Update", time: "2026-01-31T12:00:00Z", fieldsV1: fieldsV1 as never, ...(subresource ? { subresource } : {}) };
}

function managers(entries: ManagedFields[], path: ReadonlyArray<string | number>): string[] {
  return new Owners(OBJECT, entries).of(path).map((each) => each.manager);
}

describe("owners of fields", () => {
  it("are those whose set names the field", () => {
    const entries = [entry("kubectl", { "f:spec": { "f:replicas": {} } }), entry("hpa", { "f:spec": { "f:selector": {} } })];
    expect(managers(entries, ["spec", "replicas"])).toEqual(["kubectl"]);
    expect(managers(entries, ["status", "replicas"])).toEqual([]);
  });

  it("own everything below an atomic field", () => {
    expect(managers([entry("kubectl", { "f:spec": { "f:selector": {} } })], ["spec", "selector", "matchLabels", "app"])).toEqual(["kubectl"]);
  });

  it("of status have the subresource in their name", () => {
    const entries = [entry("kubelet", { "f:status": { "f:replicas": {}, "f:conditions": { 'k:{"type":"Ready"}': { ".": {}, "f:type": {}, "f:status": {} } } } }, "status")];
    expect(managers(entries, ["status", "replicas"])).toEqual(["kubelet (status)"]);
    expect(managers(entries, ["status", "conditions", 0, "status"])).toEqual(["kubelet (status)"]);
    expect(managers(entries, ["status", "conditions", 1, "status"])).toEqual([]);
  });

  it("may own one member of an item alone", () => {
    const entries = [entry("kubelet", { "f:status": { "f:conditions": { 'k:{"type":"PodScheduled"}': { "f:observedGeneration": {} } } } }, "status")];
    expect(managers(entries, ["status", "conditions", 1, "observedGeneration"])).toEqual(["kubelet (status)"]);
    expect(managers(entries, ["status", "conditions", 1, "type"])).toEqual([]);
  });

  it("own items by key, by value and by index", () => {
    const fields = { "f:spec": { "f:containers": { 'k:{"name":"b"}': { ".": {}, "f:image": {} } }, "f:args": { "i:1": {} } }, "f:metadata": { "f:finalizers": { 'v:"example.com/keep"': {} } } };
    const entries = [entry("m", fields)];
    expect(managers(entries, ["spec", "containers", 1, "image"])).toEqual(["m"]);
    expect(managers(entries, ["spec", "containers", 0, "image"])).toEqual([]);
    expect(managers(entries, ["spec", "args", 1])).toEqual(["m"]);
    expect(managers(entries, ["spec", "args", 0])).toEqual([]);
    expect(managers(entries, ["metadata", "finalizers", 0])).toEqual(["m"]);
  });

  it("may be several, and malformed sets have none", () => {
    const fields = { "f:metadata": { "f:labels": { ".": {}, "f:app": {} } } };
    expect(managers([entry("a", fields), entry("b", fields)], ["metadata", "labels", "app"])).toEqual(["a", "b"]);
    expect(managers([entry("c", { "f:spec": { "f:containers": { "k:{": {}, "v:[": {} } } })], ["spec", "containers", 0, "name"])).toEqual([]);
    expect(managers([{ manager: "d" }], ["spec", "replicas"])).toEqual([]);
  });
});
