/** Names of namespaces, and the choice of one. */
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";

/** Names of all namespaces; empty if the user may not list them. */
export const Namespaces = createContext<readonly string[]>([]);

export interface NamespaceChoiceProps {
  readonly value: string;
  /** Text of the choice of all namespaces; without it, one must be chosen. */
  readonly all?: string;
  readonly disabled?: boolean;
  readonly label?: string;
  readonly change: (namespace: string) => void;
}

/** A selection; a user who may not list namespaces types the name. */
export function NamespaceChoice({ value, all, disabled = false, label, change }: NamespaceChoiceProps) {
  const names = useContext(Namespaces);
  const [text, setText] = useState(value);
  if (names.length === 0) {
    return <input placeholder={all ?? "namespace"} aria-label={label} disabled={disabled} value={text} onInput={(event) => setText(event.currentTarget.value)} onChange={(event) => change(event.currentTarget.value.trim())} />;
  }
  return (
    <select aria-label={label} value={value} disabled={disabled} onChange={(event) => change(event.currentTarget.value)}>
      {all !== undefined && <option value="">{all}</option>}
      {[...new Set([...names, value].filter(Boolean))].map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  );
}
