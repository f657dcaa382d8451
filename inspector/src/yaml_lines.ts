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
/** Lines that are shown of one object. */
export const MOST_LINES = 5000;

/** Return an object with its members in the order in which kubectl prints them. */
export function inOrder(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { apiVersion, kind, metadata, ...rest } = object;
  return Object.fromEntries(Object.entries({ apiVersion, kind, metadata, ...rest }).filter(([, value]) => value !== undefined));
}

/** Return the lines of a list or map, at most MOST_LINES. */
export function yamlLines(value: unknown): YamlLine[] {
  const lines: YamlLine[] = [];
  append(lines, value, [], 0, "");
  return lines;
}

/** Add the lines of a list or map whose text begins at column `indent`, its first one after `prefix` (dashes of lists). */
function append(lines: YamlLine[], value: unknown, path: Path, indent: number, prefix: string): void {
  let lead = prefix;
  const add = (key: string, item: unknown, below: Path, inside: number, dash: string) => {
    const column = indent - lead.length;
    if (!isBranch(item)) lines.push({ indent: column, key: lead + key, value: `${dash ? "" : " "}${scalar(item)}`, path: below });
    else if (dash) append(lines, item, below, inside, lead + dash);
    else {
      lines.push({ indent: column, key: lead + key, value: "", path: below });
      append(lines, item, below, inside, "");
    }
    lead = "";
  };
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && lines.length < MOST_LINES; index++) add("- ", value[index], [...path, index], indent + 2, "- ");
  } else {
    for (const [name, item] of Object.entries(value as object)) {
      if (lines.length >= MOST_LINES) return;
      add(`${keyText(name)}:`, item, [...path, name], Array.isArray(item) ? indent : indent + 2, "");
    }
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
