/** An object as lines of YAML, each with the path of its field, so that owners can be shown beside it. */
import { stringify } from "yaml";
import { cut } from "./format";

export type Path = ReadonlyArray<string | number>;
export interface YamlLine {
  readonly indent: number;
  /** Text before the value: a key, or the dash of a list item. */
  readonly key: string;
  readonly value: string;
  readonly path: Path;
}

export const LONGEST_VALUE = 2000;
const MOST_LINES = 20_000;

export function yamlLines(value: unknown): YamlLine[] {
  const lines: YamlLine[] = [];
  append(lines, value, [], 0, "");
  return lines;
}

function append(lines: YamlLine[], value: unknown, path: Path, indent: number, dash: string): void {
  if (lines.length >= MOST_LINES) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      const below = [...path, index];
      if (isBranch(item)) append(lines, item, below, indent + 2, "- ");
      else lines.push({ indent, key: "- ", value: scalar(item), path: below });
    }
    return;
  }
  if (typeof value !== "object" || value === null) {
    lines.push({ indent, key: dash, value: scalar(value), path });
    return;
  }
  let prefix = dash;
  for (const [name, item] of Object.entries(value)) {
    const below = [...path, name];
    const depth = prefix ? indent - 2 : indent;
    const key = `${prefix}${keyText(name)}:`;
    if (isBranch(item)) {
      lines.push({ indent: depth, key, value: "", path: below });
      append(lines, item, below, Array.isArray(item) ? indent : indent + 2, "");
    } else lines.push({ indent: depth, key, value: ` ${scalar(item)}`, path: below });
    prefix = "";
  }
}

function isBranch(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function keyText(name: string): string {
  return /^[\w./-]+$/.test(name) ? name : JSON.stringify(cut(name, LONGEST_VALUE));
}

function scalar(value: unknown): string {
  if (typeof value === "string") {
    if (value.length > LONGEST_VALUE || value.includes("\n")) return JSON.stringify(cut(value, LONGEST_VALUE));
    return stringify(value, { lineWidth: 0 }).trimEnd();
  }
  return JSON.stringify(value) ?? "null";
}
