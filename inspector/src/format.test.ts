import { describe, expect, it } from "vitest";
import { age, ageOf, bytes, cores, cut, milliseconds, rate } from "./format";

describe("figures", () => {
  it("of ages are as kubectl prints them", () => {
    const known: Array<[number, string]> = [
      [-5, "0s"],
      [0, "0s"],
      [119, "119s"],
      [120, "2m"],
      [150, "2m30s"],
      [599, "9m59s"],
      [600, "10m"],
      [7199, "119m"],
      [7200, "2h"],
      [12_000, "3h20m"],
      [36_000, "10h"],
      [172_800, "2d"],
      [453_600, "5d6h"],
      [63_072_000, "2y"],
    ];
    expect(known.map(([seconds]) => age(seconds))).toEqual(known.map(([, text]) => text));
  });

  it("of times that cannot be read are empty", () => {
    expect(ageOf(undefined)).toBe("");
    expect(ageOf("yesterday")).toBe("");
    expect(ageOf("2026-01-31T12:00:00Z", Date.parse("2026-01-31T12:00:45Z"))).toBe("45s");
  });

  it("have units", () => {
    expect([0, 1023, 1024, 10_240, 1 << 30].map(bytes)).toEqual(["0 B", "1023 B", "1.0 KiB", "10 KiB", "1.0 GiB"]);
    expect([0, 250, 2000, 2500, 12_340].map(cores)).toEqual(["0", "250m", "2", "2500m", "12.3"]);
    expect([null, 0.00004, 0.0023, 0.0123, 1.5].map((each) => milliseconds(each))).toEqual(["–", "0.04 ms", "2.3 ms", "12 ms", "1.50 s"]);
    expect([0, 2.34, 12.7].map(rate)).toEqual(["0.0", "2.3", "13"]);
  });

  it("of texts that are cut tell the length", () => {
    expect(cut("short", 5)).toBe("short");
    expect(cut("x".repeat(1_000_000), 3)).toBe("xxx… (1,000,000 characters)");
  });
});
