/** Requests to the API server, which the front passes on with the kubeconfig's rights. */

export interface Status {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly details?: { readonly causes?: ReadonlyArray<{ readonly message?: string; readonly field?: string }> };
}

/** A request that was refused, or not answered (code 0). */
export class ApiError extends Error {
  constructor(readonly status: Status) {
    super(status.message);
  }
  get code(): number {
    return this.status.code;
  }
}

/** Accept header of lists and watches with the columns that kubectl prints. */
export const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/** Accept header of lists without specs and statuses. */
export const METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const HEADER = { "x-steersman-inspector": "1" };
const API = "/k8s";
const LISTS = ["items", "rows", "requests", "steps", "columnDefinitions"];
export const NOT_UNDERSTOOD = "The server's answer is not understood: it is not what the Kubernetes API promises.";

export interface Options {
  readonly method?: string;
  readonly accept?: string;
  readonly type?: string;
  readonly body?: string;
  readonly signal?: AbortSignal;
  /** Called with the header fields of an answer. */
  readonly seen?: (headers: Headers) => void;
}

/** Send a request to a path of the API server and return the decoded answer. Throws ApiError. */
export function k8s<T>(path: string, options: Options = {}): Promise<T> {
  return request<T>(API + path, options);
}

/** Send a request to the front itself. Throws ApiError. */
export async function request<T>(path: string, options: Options = {}): Promise<T> {
  const headers: Record<string, string> = { ...HEADER, accept: options.accept ?? "application/json" };
  if (options.type) headers["content-type"] = options.type;
  let answer: Response;
  try {
    answer = await fetch(path, {
      method: options.method ?? "GET",
      headers,
      body: options.body ?? null,
      signal: options.signal ?? null,
      redirect: "error",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError({ code: 0, reason: "Unreachable", message: "steersman inspect does not answer" });
  }
  options.seen?.(answer.headers);
  const text = await answer.text();
  if (!answer.ok) throw new ApiError(statusOf(answer.status, text));
  return understood<T>(text);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return the object in an answer; its lists have only objects. Throws ApiError for other text. */
export function understood<T>(text: string): T {
  let found: unknown = null;
  try {
    found = JSON.parse(text);
  } catch {
    // not JSON
  }
  if (!isObject(found)) throw new ApiError({ code: 502, reason: "", message: NOT_UNDERSTOOD });
  for (const name of LISTS) if (name in found) found[name] = Array.isArray(found[name]) ? found[name].filter(isObject) : [];
  return found as T;
}

/** Return the Status of a refusal; other bodies become its message. */
export function statusOf(code: number, text: string): Status {
  try {
    const found = JSON.parse(text) as Partial<Status>;
    if (typeof found.message === "string") {
      const details = found.details ? { details: found.details } : {};
      return { code: found.code ?? code, reason: found.reason ?? "", message: found.message, ...details };
    }
  } catch {
    // not JSON: the text itself is shown
  }
  return { code, reason: "", message: text.slice(0, 2000) || `the server answered ${code}` };
}
