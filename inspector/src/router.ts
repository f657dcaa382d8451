/** Addresses of views: `#/objects/pods/default/web?labels=app%3Dweb`. The fragment is never sent to a server. */
import { useEffect, useState } from "preact/hooks";

export interface Address {
  /** Decoded parts of the path; the first one names the view. */
  readonly parts: readonly string[];
  readonly query: ReadonlyMap<string, string>;
}

export function parseAddress(hash: string): Address {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decode);
  return { parts, query: new Map(new URLSearchParams(query)) };
}

export function formatAddress(parts: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const params = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const text = params.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(address: string): void {
  location.hash = address;
}

/** Change parameters of the current address without a new entry in the browser's history. */
export function refine(changes: Readonly<Record<string, string>>): void {
  const { parts, query } = parseAddress(location.hash);
  history.replaceState(null, "", formatAddress(parts, { ...Object.fromEntries(query), ...changes }));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useAddress(): Address {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return parseAddress(hash);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
