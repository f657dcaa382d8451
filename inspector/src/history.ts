/** History of objects: writes that the server has kept, as /debug/history serves them. */
import { ApiError, k8s } from "./api";
import { pathOf, type Kind } from "./discovery";

export const PATH = "/debug/history";

/** What a server keeps; revisions are decimal numbers as text. */
export interface Summary {
  readonly storage: string;
  /** True if times and users of writes are recorded. */
  readonly records: boolean;
  /** Size and age that are kept, "" without bounds of its own. */
  readonly bounds?: string;
  readonly oldestRevision: string;
  readonly newestRevision: string;
}

/** A field that a write has changed. */
export interface Change {
  readonly path: string;
  readonly op: "added" | "removed" | "changed" | "ordered";
  readonly from?: unknown;
  readonly to?: unknown;
  readonly truncated?: boolean;
}

/** One write of an object. */
export interface Write {
  readonly revision: string;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly namespace?: string;
  readonly name: string;
  readonly time?: string;
  readonly verb?: string;
  readonly subresource?: string;
  readonly user?: string;
  readonly userAgent?: string;
  readonly auditID?: string;
  readonly managers?: readonly string[];
  readonly changes?: readonly Change[];
  readonly moreChanges?: number;
  readonly unreadable?: string;
}
export interface Page {
  readonly continue?: string;
  readonly items?: readonly Write[];
}

export function readSummary(signal: AbortSignal): Promise<Summary> {
  return k8s<Summary>(PATH, { signal });
}

/** Return the newest revision at a time (RFC 3339). Throws ApiError. */
export async function revisionAt(time: string): Promise<number> {
  const found = await k8s<{ revision: string }>(`${PATH}?${new URLSearchParams({ time }).toString()}`);
  return Number(found.revision);
}

/** Read a page of writes of an object, or of a collection without a name, the newest first. Throws ApiError. */
export function readWrites(kind: Kind, namespace: string, name: string, token: string, signal: AbortSignal): Promise<Page> {
  const query = new URLSearchParams(token ? { limit: "100", continue: token } : { limit: "100" });
  return k8s<Page>(`${PATH}${pathOf(kind, namespace, name)}?${query.toString()}`, { signal });
}

/** Return the object as it was at a revision, null if there was none. Throws ApiError. */
export async function objectAt(kind: Kind, namespace: string, name: string, revision: number, signal: AbortSignal): Promise<unknown> {
  try {
    return await k8s<unknown>(`${PATH}${pathOf(kind, namespace, name)}?revision=${revision}`, { signal });
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return null;
    throw error;
  }
}

/** Return the writes of both, the newest first, without duplicates. */
export function mergedWrites(some: readonly Write[], more: readonly Write[]): Write[] {
  const found = new Map<string, Write>();
  for (const each of [...some, ...more]) found.set(`${each.revision}/${each.namespace ?? ""}/${each.name}`, each);
  return [...found.values()].sort((a, b) => Number(b.revision) - Number(a.revision));
}

/** Return the time of the newest of `writes` at a revision, "" if it is not known. */
export function timeAt(writes: readonly Write[], revision: number): string {
  return writes.find((each) => Number(each.revision) <= revision)?.time ?? "";
}

/** Return the verb of a write with its subresource, as `patch scale`; without a record, the type of the event. */
export function verbOf(write: Write): string {
  if (!write.verb) return { ADDED: "created", MODIFIED: "changed", DELETED: "deleted" }[write.type];
  return write.subresource ? `${write.verb} ${write.subresource}` : write.verb;
}

/** Return a change as one line: `.spec.replicas: 1 → 3`. */
export function changeText(change: Change): string {
  const more = change.truncated ? " …" : "";
  if (change.op === "added") return `${change.path}: + ${JSON.stringify(change.to)}${more}`;
  if (change.op === "removed") return `${change.path}: − ${JSON.stringify(change.from)}${more}`;
  if (change.op === "ordered") return `${change.path}: another order`;
  return `${change.path}: ${JSON.stringify(change.from)} → ${JSON.stringify(change.to)}${more}`;
}

/** True for a write of status alone. */
export function isStatus(write: Write): boolean {
  return write.subresource === "status" || (write.verb === undefined && !!write.changes?.length && write.changes.every((each) => each.path.startsWith(".status")));
}

export interface Entry {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly uid?: string; readonly resourceVersion?: string };
}
export interface Changed {
  readonly type: "added" | "removed" | "changed";
  readonly namespace: string;
  readonly name: string;
}

/** Return the objects that differ between two states of a collection, by namespace and name. */
export function changedBetween(before: readonly Entry[], after: readonly Entry[]): Changed[] {
  const keyOf = ({ metadata }: Entry) => `${metadata.namespace ?? ""}/${metadata.name}`;
  const old = new Map(before.map((each) => [keyOf(each), each]));
  const found: Changed[] = [];
  const add = (type: Changed["type"], { metadata }: Entry) => found.push({ type, namespace: metadata.namespace ?? "", name: metadata.name });
  for (const each of after) {
    const earlier = old.get(keyOf(each));
    old.delete(keyOf(each));
    if (!earlier) add("added", each);
    else if (earlier.metadata.resourceVersion !== each.metadata.resourceVersion || earlier.metadata.uid !== each.metadata.uid) add("changed", each);
  }
  for (const each of old.values()) add("removed", each);
  return found.sort((a, b) => a.namespace.localeCompare(b.namespace) || a.name.localeCompare(b.name));
}
