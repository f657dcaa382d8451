import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { inOrder, LONGEST_VALUE, MOST_LINES, yamlLines } from "./yaml_lines";

function textOf(value: unknown): string {
  return yamlLines(value)
    .map((line) => " ".repeat(line.indent) + line.key + line.value)
    .join("\n");
}

describe("lines of YAML", () => {
  it("are YAML of the same object", () => {
    const object = {
      apiVersion: "v1",
      empty: {},
      none: [],
      nothing: null,
      numbers: [1, -2.5, 1e21],
      texts: ["yes", "true", "1.0", "", " padded ", "a: b", "- c", "#d", "null", "2026-01-31T12:00:00Z", "é\u2028\u0007"],
      lines: "one\ntwo\n",
      deep: [[[{ a: [[{ b: 1, c: [] }]] }]]],
      nested: [{ name: "a", ports: [{ port: 80 }, { port: 443, tags: ["x"] }] }, [1, [2]], {}],
      "odd key: #": { "": 1, "a b": 2, "/x": 3 },
    };
    expect(parse(textOf(object))).toEqual(object);
  });

  it("have the path of their field", () => {
    const found = yamlLines({ spec: { containers: [{ name: "a", args: ["p"] }] } });
    expect(found.map((line) => line.path.join("/"))).toEqual(["spec", "spec/containers", "spec/containers/0/name", "spec/containers/0/args", "spec/containers/0/args/0"]);
  });

  it("are cut where a value or a key is long", () => {
    const [line] = yamlLines({ data: "x".repeat(1_000_000) });
    expect(line!.value.length).toBeLessThan(LONGEST_VALUE + 100);
    const [keyed] = yamlLines({ ["k".repeat(1_000_000) + " "]: 1 });
    expect(keyed!.key.length).toBeLessThan(LONGEST_VALUE + 100);
    expect(yamlLines({ list: Array.from({ length: 100_000 }, (_, index) => index) }).length).toBe(MOST_LINES);
  });

  it("begin with apiVersion, kind and metadata", () => {
    expect(Object.keys(inOrder({ status: {}, kind: "Pod", apiVersion: "v1", metadata: {} }))).toEqual(["apiVersion", "kind", "metadata", "status"]);
    expect(Object.keys(inOrder({ data: {}, metadata: {} }))).toEqual(["metadata", "data"]);
  });
});
