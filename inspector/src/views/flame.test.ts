import { describe, expect, it } from "vitest";
import { barsOf } from "./flame";

describe("bars of a flame chart", () => {
  it("are placed by time and nesting", () => {
    const bars = barsOf([{ name: "Create", start: 2, milliseconds: 8, steps: [{ name: "decode", start: 2, milliseconds: 1 }] }, { name: "late", start: 12, milliseconds: 5 }], 10);
    expect(bars.map(({ step, depth, left, width }) => [step.name, depth, left, width])).toEqual([
      ["Create", 0, 0.2, 0.8],
      ["decode", 1, 0.2, 0.1],
      ["late", 0, 1, 0],
    ]);
  });

  it("are bounded in number, and those of no time have no width", () => {
    const steps = Array.from({ length: 10_000 }, () => ({ name: "x", start: 0, milliseconds: 1 }));
    expect(barsOf(steps, 1).length).toBe(500);
    expect(barsOf([{ name: "x", start: 0, milliseconds: 0 }], 0)).toMatchObject([{ left: 0, width: 0 }]);
  });
});
