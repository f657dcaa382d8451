import { describe, expect, it } from "vitest";
import { formatAddress, parseAddress } from "./router";

describe("addresses", () => {
  it("are read as they were written", () => {
    const parts = ["objects", "pods", "default", "a/b?c#d%é"];
    const { parts: found, query } = parseAddress(formatAddress(parts, { labels: "app=web,x in (a, b)", q: "ü&=?" }));
    expect(found).toEqual(parts);
    expect(Object.fromEntries(query)).toEqual({ labels: "app=web,x in (a, b)", q: "ü&=?" });
  });

  it("leave out empty parameters", () => {
    expect(formatAddress(["why"], { ns: "" })).toBe("#/why");
  });

  it("of any other form are no error", () => {
    expect(parseAddress("").parts).toEqual([]);
    expect(parseAddress("#").parts).toEqual([]);
    expect(parseAddress("#//objects///pods").parts).toEqual(["objects", "pods"]);
    expect(parseAddress("#/objects/%E0%A4%A").parts).toEqual(["objects", "%E0%A4%A"]);
  });

  it("stay in the page, whatever they contain", () => {
    expect(formatAddress(["javascript:alert(1)"])).toBe("#/javascript%3Aalert(1)");
  });
});
