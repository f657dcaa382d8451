/** Lists as of a revision, which every API server answers until the revision is compacted. */
import { k8s } from "./api";

const PAGE = 500;

interface List<T> {
  readonly items?: readonly T[] | null;
  readonly metadata?: { readonly continue?: string };
}

/** Return the query of a list as of a revision; later pages have a token, which holds the revision. */
export function exactQuery(revision: number, token = "", more: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams({ ...more, limit: String(PAGE) });
  if (token) query.set("continue", token);
  else {
    query.set("resourceVersion", String(revision));
    query.set("resourceVersionMatch", "Exact");
  }
  return `?${query.toString()}`;
}

/** Return all items of a collection as of a revision. Throws ApiError. */
export async function listAt<T>(path: string, revision: number, accept: string, signal: AbortSignal, more: Readonly<Record<string, string>> = {}): Promise<T[]> {
  const found: T[] = [];
  let token = "";
  do {
    const list: List<T> = await k8s<List<T>>(path + exactQuery(revision, token, more), { accept, signal });
    found.push(...(list.items ?? []));
    token = list.metadata?.continue ?? "";
  } while (token);
  return found;
}

/** Return a revision from an address, 0 if there is none. */
export function revisionOf(text: string | undefined): number {
  return text && /^[1-9][0-9]{0,18}$/.test(text) ? Number(text) : 0;
}
