/** Names of namespaces, for selections. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";

export const Namespaces = createContext<readonly string[]>([]);

export function useNamespaces(): readonly string[] {
  return useContext(Namespaces);
}
