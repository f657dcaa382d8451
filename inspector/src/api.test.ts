import { describe, expect, it } from "vitest";
import { NOT_UNDERSTOOD, statusOf, understood } from "./api";

describe("the status of a refusal", () => {
  it("is the server's own", () => {
    const text = JSON.stringify({ kind: "Status", code: 409, reason: "Conflict", message: "changed", details: { causes: [{ field: ".spec", message: "x" }] } });
    expect(statusOf(409, text)).toEqual({ code: 409, reason: "Conflict", message: "changed", details: { causes: [{ field: ".spec", message: "x" }] } });
  });

  it("of the front has a code and a message", () => {
    expect(statusOf(502, '{"code": 502, "message": "The API server does not answer"}')).toEqual({ code: 502, reason: "", message: "The API server does not answer" });
  });

  it("is the text itself where it is no Status", () => {
    expect(statusOf(404, "404 page not found\n").message).toBe("404 page not found\n");
    expect(statusOf(500, "").message).toBe("the server answered 500");
    expect(statusOf(500, '{"message": 3}').message).toBe('{"message": 3}');
    expect(statusOf(500, "null").message).toBe("null");
    expect(statusOf(500, "<".repeat(1_000_000)).message.length).toBe(2000);
  });
});

describe("an answer", () => {
  it("is an object, whose lists have objects", () => {
    expect(understood('{"items": [null, 1, {"a": [null]}], "rows": null, "kind": "x"}')).toEqual({ items: [{ a: [null] }], rows: [], kind: "x" });
  });

  it("is refused if it is something else", () => {
    for (const text of ["", "null", "[]", "7", '"x"', "<html>"]) expect(() => understood(text)).toThrow(NOT_UNDERSTOOD);
  });
});
