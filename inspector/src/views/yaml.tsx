/** An object as YAML, with who owns which field and since when. */
import { stringify } from "yaml";
import { useMemo, useState } from "preact/hooks";
import { ageOf, cut } from "../format";
import { Owners, type Owner } from "../owners";
import { inOrder, MOST_LINES, yamlLines } from "../yaml_lines";
import type { KubernetesObject } from "./object";

export function Yaml({ object }: { object: KubernetesObject }) {
  const [showsFields, setShowsFields] = useState(false);
  const shown = useMemo(() => {
    const { managedFields, ...metadata } = object.metadata;
    return inOrder({ ...object, metadata: showsFields ? { ...metadata, managedFields } : metadata });
  }, [object, showsFields]);
  const owners = useMemo(() => new Owners(object, object.metadata.managedFields ?? []), [object]);
  const lines = useMemo(() => yamlLines(shown), [shown]);
  return (
    <div class="yaml">
      <div class="yaml-tools">
        <label class="check">
          <input type="checkbox" checked={showsFields} onChange={(event) => setShowsFields(event.currentTarget.checked)} /> managedFields
        </label>
        <button type="button" onClick={() => void navigator.clipboard.writeText(stringify(shown, { lineWidth: 0 }))}>
          Copy
        </button>
      </div>
      <table aria-label="Fields and their owners">
        <colgroup>
          <col />
          <col class="owners" />
        </colgroup>
        <thead class="visually-hidden">
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Since, and owner</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line, index) => (
            <tr key={index}>
              <td>
                <pre>
                  {" ".repeat(line.indent)}
                  <span class="key">{line.key}</span>
                  {line.value}
                </pre>
              </td>
              <OwnerCell owners={line.value === "" ? [] : owners.of(line.path)} />
            </tr>
          ))}
        </tbody>
      </table>
      {lines.length >= MOST_LINES && <p class="note">Only the first {MOST_LINES.toLocaleString("en")} lines are shown; Copy has all.</p>}
      <p class="count">Fields without an owner have defaults, or were written by a subresource that records none, such as a binding.</p>
    </div>
  );
}

function OwnerCell({ owners }: { owners: readonly Owner[] }) {
  return (
    <td class="owner" title={owners.map((each) => `${each.manager} (${each.operation}) ${each.time}`).join("\n")}>
      {owners.map((each, index) => (
        <span key={index}>
          {index > 0 && ", "}
          <time dateTime={each.time}>{ageOf(each.time)}</time> {cut(each.manager, 60)}
        </span>
      ))}
    </td>
  );
}
