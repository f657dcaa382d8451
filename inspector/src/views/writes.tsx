/** The writes of an object or a collection, the newest first. */
import { useState } from "preact/hooks";
import type { Kind } from "../discovery";
import { ageOf, cut } from "../format";
import { changeText, isStatus, verbOf, type Write } from "../history";
import { formatAddress } from "../router";
import type { Choose } from "./timeline";

const SHOWN = 3;
const LONGEST = 300;

interface WriteTableProps {
  readonly kind: Kind;
  /** True for the writes of one object. */
  readonly single: boolean;
  readonly writes: readonly Write[];
  readonly loading: boolean;
  readonly from: number;
  readonly to: number;
  readonly newest: number;
  readonly records: boolean;
  readonly choose: Choose;
  readonly older?: () => void;
}

export function WriteTable({ kind, single, writes, loading, from, to, records, choose, older }: WriteTableProps) {
  const [hidesStatus, setHidesStatus] = useState(false);
  const [text, setText] = useState("");
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = writes.filter((each) => !(hidesStatus && isStatus(each)) && words.every((word) => textOf(each).includes(word)));
  return (
    <section class="panel" aria-label="Writes">
      <header>
        <h2>Writes</h2>
        <span class="count">{found.length.toLocaleString("en")}</span>
        <input type="search" placeholder="Filter" aria-label="Filter writes" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <label class="check">
          <input type="checkbox" checked={hidesStatus} onChange={(event) => setHidesStatus(event.currentTarget.checked)} /> without status
        </label>
      </header>
      {loading && writes.length === 0 && <p class="empty">Reading writes …</p>}
      {!loading && writes.length === 0 && <p class="empty">No write is kept.</p>}
      {writes.length > 0 && found.length === 0 && <p class="empty">No write matches the filter.</p>}
      {found.length > 0 && (
        <div class="scroll">
          <table class="figures writes">
            <thead>
              <tr>
                <th scope="col">Revision</th>
                {records && <th scope="col">Time</th>}
                <th scope="col">Write</th>
                {!single && <th scope="col">Object</th>}
                {records && <th scope="col">User</th>}
                <th scope="col">Manager</th>
                <th scope="col">Changes</th>
              </tr>
            </thead>
            <tbody>
              {found.map((each) => (
                <WriteRow key={`${each.revision}/${each.namespace ?? ""}/${each.name}`} kind={kind} single={single} write={each} records={records} from={from} to={to} choose={choose} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {older && (
        <button type="button" onClick={older} disabled={loading}>
          Older writes
        </button>
      )}
    </section>
  );
}

interface WriteRowProps {
  readonly kind: Kind;
  readonly single: boolean;
  readonly write: Write;
  readonly records: boolean;
  readonly from: number;
  readonly to: number;
  readonly choose: Choose;
}

function WriteRow({ kind, single, write, records, from, to, choose }: WriteRowProps) {
  const revision = Number(write.revision);
  return (
    <tr class={write.type === "DELETED" ? "gone" : ""}>
      <th scope="row">
        {write.revision}
        <span class="choice">
          <button type="button" aria-pressed={to === revision} aria-label={`Look at revision ${revision}`} title="look at this revision" onClick={() => choose("to", revision)}>
            at
          </button>
          <button type="button" aria-pressed={from === revision} aria-label={`Compare from revision ${revision}`} title="compare from this revision on" onClick={() => choose("from", revision)}>
            from
          </button>
        </span>
      </th>
      {records && (
        <td>
          <time dateTime={write.time} title={write.time}>
            {ageOf(write.time)}
          </time>
        </td>
      )}
      <td>{cut(verbOf(write), 60)}</td>
      {!single && (
        <td>
          <a href={formatAddress(["time", kind.id, write.namespace || "-", write.name])}>{cut([write.namespace, write.name].filter(Boolean).join("/"), 200)}</a>
        </td>
      )}
      {records && <td title={cut(write.userAgent ?? "", 300)}>{cut(write.user ?? "", 120)}</td>}
      <td>{cut((write.managers ?? []).join(", "), 120)}</td>
      <td>
        <Changes write={write} />
      </td>
    </tr>
  );
}

function Changes({ write }: { write: Write }) {
  const [all, setAll] = useState(false);
  const changes = write.changes ?? [];
  if (write.unreadable) return <span class="warn">{cut(write.unreadable, LONGEST)}</span>;
  if (changes.length === 0) return <span class="count">{{ ADDED: "created", DELETED: "deleted", MODIFIED: write.changes ? "none" : "its earlier state is not kept" }[write.type]}</span>;
  const left = changes.length - SHOWN + (write.moreChanges ?? 0);
  return (
    <ul class="changes">
      {changes.slice(0, all ? changes.length : SHOWN).map((each, index) => (
        <li key={index}>
          <code>{cut(changeText(each), LONGEST)}</code>
        </li>
      ))}
      {!all && left > 0 && (
        <li>
          <button type="button" class="quiet" onClick={() => setAll(true)}>
            {left} more
          </button>
        </li>
      )}
      {all && (write.moreChanges ?? 0) > 0 && <li class="count">and {write.moreChanges} that are not listed</li>}
    </ul>
  );
}

function textOf(write: Write): string {
  const changes = (write.changes ?? []).map((each) => each.path).join(" ");
  return `${write.revision} ${verbOf(write)} ${write.namespace ?? ""}/${write.name} ${write.user ?? ""} ${write.userAgent ?? ""} ${(write.managers ?? []).join(" ")} ${changes}`.toLowerCase();
}
