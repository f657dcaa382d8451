/** The kinds of the server, read once, and again when an unknown one is asked for. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Kind } from "./discovery";

export const Kinds = createContext<readonly Kind[]>([]);

export function useKinds(): readonly Kind[] {
  return useContext(Kinds);
}

export function useKind(id: string): Kind | undefined {
  return useKinds().find((each) => each.id === id);
}
