/** Owners of fields, from metadata.managedFields. */
import type { Path } from "./yaml_lines";

export interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly time?: string;
  readonly subresource?: string;
  readonly fieldsV1?: FieldSet;
}
export interface FieldSet {
  readonly [element: string]: FieldSet;
}
export interface Owner {
  readonly manager: string;
  readonly operation: string;
  readonly time: string;
}

/** Returns the owners of the field at a path of `object`: the entries that name the field, or all of its parent. */
export class Owners {
  constructor(
    private readonly object: unknown,
    private readonly entries: readonly ManagedFields[],
  ) {}

  of(path: Path): Owner[] {
    const found: Owner[] = [];
    for (const entry of this.entries) {
      if (entry.fieldsV1 && owns(entry.fieldsV1, this.object, path)) {
        found.push({
          manager: (entry.manager ?? "") + (entry.subresource ? ` (${entry.subresource})` : ""),
          operation: entry.operation ?? "",
          time: entry.time ?? "",
        });
      }
    }
    return found;
  }
}

function owns(fields: FieldSet, object: unknown, path: Path): boolean {
  let set: FieldSet | undefined = fields;
  let value: unknown = object;
  for (let depth = 0; depth < path.length; depth++) {
    const part = path[depth]!;
    if (set === undefined) return false;
    const names = Object.keys(set);
    if (depth > 0 && names.every((name) => name === ".")) return true; // a leaf: the field belongs as a whole
    const item: unknown = Array.isArray(value) ? value[part as number] : (value as Record<string, unknown> | null)?.[part as string];
    set = Array.isArray(value) ? elementOf(set, item, part as number) : set[`f:${part}`];
    value = item;
  }
  if (set === undefined) return false;
  const names = Object.keys(set);
  return names.length === 0 || names.includes(".");
}

/** Return the part of a field set that is about an item of a list: by its keys, its value, or its index. */
function elementOf(set: FieldSet, item: unknown, index: number): FieldSet | undefined {
  for (const [name, below] of Object.entries(set)) {
    if (name.startsWith("k:")) {
      const keys = parse(name.slice(2));
      if (typeof keys === "object" && keys !== null && typeof item === "object" && item !== null) {
        const given = item as Record<string, unknown>;
        if (Object.entries(keys).every(([key, value]) => same(given[key], value))) return below;
      }
    } else if (name.startsWith("v:")) {
      if (same(parse(name.slice(2)), item)) return below;
    } else if (name === `i:${index}`) return below;
  }
  return undefined;
}

function same(left: unknown, right: unknown): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
