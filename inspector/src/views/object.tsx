/** One object: YAML with owners of fields, conditions, owners and dependents, events, edit and delete. */
import { stringify } from "yaml";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, k8s } from "../api";
import { channel } from "../channel";
import { pathOf, type Kind } from "../discovery";
import { ageOf, cut } from "../format";
import { useKinds } from "../kinds";
import { Owners, type ManagedFields } from "../owners";
import { formatAddress, refine, useAddress } from "../router";
import { yamlLines } from "../yaml_lines";
import { Editor } from "./editor";
import { EventList, objectAddress } from "./events";

interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
    readonly managedFields?: readonly ManagedFields[];
    readonly ownerReferences?: readonly OwnerReference[];
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}
interface Condition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

const TABS = { yaml: "YAML", edit: "Edit", events: "Events" } as const;
type Tab = keyof typeof TABS;

export function ObjectView({ kind, namespace, name }: { kind: Kind; namespace: string; name: string }) {
  const { query } = useAddress();
  const path = pathOf(kind, namespace, name);
  const { object, error, gone } = useObject(kind, namespace, name);
  const wanted = query.get("tab") ?? "yaml";
  const tab: Tab = wanted in TABS ? (wanted as Tab) : "yaml";
  const [deleting, setDeleting] = useState(false);
  return (
    <section class="panel main object" aria-label={name}>
      <header>
        <h1>
          <a href={formatAddress(["objects", kind.id], namespace ? { ns: namespace } : {})}>{kind.kind}</a>{" "}
          {namespace && <span>{cut(namespace, 80)} / </span>}
          {cut(name, 260)}
        </h1>
        {object && <span class="count">{ageOf(object.metadata.creationTimestamp)}</span>}
        <a class="button" href={formatAddress(["why", kind.id, namespace || "-", name])}>
          Why
        </a>
        <a class="button" href={formatAddress(["time", kind.id, namespace || "-", name])}>
          History
        </a>
        <button type="button" class="danger" onClick={() => setDeleting(true)} disabled={!object || !kind.verbs.includes("delete")}>
          Delete
        </button>
      </header>
      {deleting && object && <DeleteDialog path={path} object={object} close={() => setDeleting(false)} />}
      {gone && <p class="note">The object is gone; its last state is shown.</p>}
      {object?.metadata.deletionTimestamp && !gone && (
        <p class="note">
          Deleted {ageOf(object.metadata.deletionTimestamp)} ago{object.metadata.finalizers?.length ? `, kept by ${object.metadata.finalizers.join(", ")}` : ""}.
        </p>
      )}
      {error && <p class="error">{cut(error, 600)}</p>}
      {!object && !error && <p class="empty">Reading …</p>}
      {object && (
        <>
          <Conditions conditions={object.status?.conditions ?? []} />
          <Relatives object={object} kind={kind} />
          <div class="tabs" role="tablist">
            {Object.entries(TABS).map(([id, title]) => (
              <button key={id} type="button" role="tab" aria-selected={tab === id} onClick={() => refine({ tab: id === "yaml" ? "" : id })}>
                {title}
              </button>
            ))}
          </div>
          <div role="tabpanel">
            {tab === "yaml" && <Yaml object={object} />}
            {tab === "edit" && <Editor path={path} object={object} />}
            {tab === "events" && <EventList namespace={namespace || "default"} fields={`involvedObject.uid=${object.metadata.uid}`} />}
          </div>
        </>
      )}
    </section>
  );
}

function useObject(kind: Kind, namespace: string, name: string) {
  const [object, setObject] = useState<KubernetesObject | null>(null);
  const [error, setError] = useState("");
  const [gone, setGone] = useState(false);
  useEffect(() => {
    const aborted = new AbortController();
    let close: () => void = () => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        const found = await k8s<KubernetesObject>(pathOf(kind, namespace, name), { signal: aborted.signal });
        setObject(found);
        setError("");
        setGone(false);
        if (kind.verbs.includes("watch")) watch(found.metadata.resourceVersion);
      } catch (problem) {
        if (aborted.signal.aborted) return;
        if (problem instanceof ApiError && problem.code === 404) setGone(true);
        setError(problem instanceof ApiError ? problem.message : String(problem));
      }
    };
    const watch = (version: string) => {
      const field = encodeURIComponent(`metadata.name=${name}`);
      close = channel().open(
        { path: `${pathOf(kind, namespace)}?watch=true&fieldSelector=${field}&resourceVersion=${version}` },
        {
          lines: (lines) => {
            for (const { type, object: found } of lines as ReadonlyArray<{ type: string; object: KubernetesObject }>) {
              if (type === "ADDED" || type === "MODIFIED") {
                setObject(found);
                setGone(false);
              } else if (type === "DELETED") {
                setObject(found);
                setGone(true);
              }
            }
          },
          end: () => (timer = setTimeout(() => void read(), 2000)),
        },
      );
    };
    void read();
    return () => {
      aborted.abort();
      clearTimeout(timer);
      close();
    };
  }, [kind.id, kind.version, namespace, name]);
  return { object, error, gone };
}

function Conditions({ conditions }: { conditions: readonly Condition[] }) {
  if (!Array.isArray(conditions) || conditions.length === 0) return null;
  return (
    <table class="conditions">
      <caption class="visually-hidden">Conditions</caption>
      <thead>
        <tr>
          <th scope="col">Condition</th>
          <th scope="col">Status</th>
          <th scope="col">Since</th>
          <th scope="col">Reason</th>
          <th scope="col">Message</th>
        </tr>
      </thead>
      <tbody>
        {conditions.slice(0, 50).map((each, index) => (
          <tr key={index}>
            <th scope="row">{cut(each.type ?? "", 100)}</th>
            <td>{cut(each.status ?? "", 20)}</td>
            <td>{ageOf(each.lastTransitionTime)}</td>
            <td>{cut(each.reason ?? "", 100)}</td>
            <td>{cut(each.message ?? "", 600)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface Relative {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly uid: string; readonly ownerReferences?: readonly OwnerReference[] };
}
const DEPENDENTS: Readonly<Record<string, readonly string[]>> = {
  Deployment: ["replicasets.apps"],
  ReplicaSet: ["pods"],
  StatefulSet: ["pods", "controllerrevisions.apps"],
  DaemonSet: ["pods", "controllerrevisions.apps"],
  ReplicationController: ["pods"],
  Job: ["pods"],
  CronJob: ["jobs.batch"],
  Service: ["endpointslices.discovery.k8s.io"],
};
const METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const MOST = 100;

/** Owners above and dependents below the object. Dependents of other kinds are looked for on demand. */
function Relatives({ object, kind }: { object: KubernetesObject; kind: Kind }) {
  const kinds = useKinds();
  const [found, setFound] = useState<ReadonlyArray<{ kind: Kind; item: Relative }> | null>(null);
  const namespace = object.metadata.namespace ?? "";
  const owners = object.metadata.ownerReferences ?? [];
  const usual = DEPENDENTS[object.kind] ?? [];
  const search = async (all: boolean) => {
    const searched = kinds.filter((each) => (all ? each.namespaced === kind.namespaced || !kind.namespaced : usual.includes(each.id)) && each.plural !== "events");
    const lists = await Promise.all(
      searched.map(async (each) => {
        try {
          const list = await k8s<{ items: Relative[] }>(`${pathOf(each, namespace)}?resourceVersion=0`, { accept: METADATA });
          return list.items.filter((item) => item.metadata.ownerReferences?.some((owner) => owner.uid === object.metadata.uid)).map((item) => ({ kind: each, item }));
        } catch (error) {
          if (error instanceof ApiError) return []; // a kind that the user may not list has no rows here
          throw error;
        }
      }),
    );
    setFound(lists.flat());
  };
  useEffect(() => {
    setFound(null);
    if (usual.length) void search(false);
  }, [object.metadata.uid, kinds.length]);
  return (
    <div class="relatives">
      {owners.length > 0 && (
        <p>
          Owned by{" "}
          {owners.slice(0, MOST).map((owner, index) => {
            const where = objectAddress(kinds, owner.apiVersion, owner.kind, namespace, owner.name);
            const text = `${owner.kind.toLowerCase()}/${owner.name}`;
            return (
              <span key={owner.uid}>
                {index > 0 && ", "}
                {where ? <a href={where}>{cut(text, 200)}</a> : cut(text, 200)}
              </span>
            );
          })}
        </p>
      )}
      {found && found.length > 0 && (
        <p>
          Owns{" "}
          {found.slice(0, MOST).map(({ kind: below, item }, index) => (
            <span key={item.metadata.uid}>
              {index > 0 && ", "}
              <a href={formatAddress(["objects", below.id, item.metadata.namespace ?? "-", item.metadata.name])}>{cut(`${below.kind.toLowerCase()}/${item.metadata.name}`, 200)}</a>
            </span>
          ))}
          {found.length > MOST && ` and ${found.length - MOST} more`}
        </p>
      )}
      <button type="button" class="quiet" onClick={() => void search(true)}>
        Look for dependents of all kinds
      </button>
      {found && found.length === 0 && <span class="empty"> none found</span>}
    </div>
  );
}

function Yaml({ object }: { object: KubernetesObject }) {
  const [showsFields, setShowsFields] = useState(false);
  const shown = useMemo(() => {
    if (showsFields) return object;
    const { managedFields: _, ...metadata } = object.metadata;
    return { ...object, metadata };
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
        <tbody>
          {lines.map((line, index) => {
            const owned = line.value === "" ? [] : owners.of(line.path);
            return (
              <tr key={index}>
                <td>
                  <pre>
                    {" ".repeat(line.indent)}
                    <span class="key">{line.key}</span>
                    {line.value}
                  </pre>
                </td>
                <td class="owner" title={owned.map((each) => `${each.manager} (${each.operation}) ${each.time}`).join("\n")}>
                  {owned.map((each) => `${cut(each.manager, 40)} ${ageOf(each.time)}`).join(", ")}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function DeleteDialog({ path, object, close }: { path: string; object: KubernetesObject; close: () => void }) {
  const [policy, setPolicy] = useState("Background");
  const [error, setError] = useState("");
  const remove = async () => {
    try {
      const body = { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: policy, preconditions: { uid: object.metadata.uid } };
      await k8s(path, { method: "DELETE", type: "application/json", body: JSON.stringify(body) });
      close();
    } catch (problem) {
      setError(problem instanceof ApiError ? problem.message : String(problem));
    }
  };
  return (
    <div class="dialog" role="alertdialog" aria-label={`Delete ${object.metadata.name}`}>
      <p>
        Delete {object.kind} <b>{cut(object.metadata.name, 260)}</b>?
      </p>
      <label>
        Dependents{" "}
        <select value={policy} onChange={(event) => setPolicy(event.currentTarget.value)}>
          <option value="Background">are deleted after it</option>
          <option value="Foreground">are deleted before it</option>
          <option value="Orphan">are kept</option>
        </select>
      </label>
      {error && <p class="error">{cut(error, 600)}</p>}
      <div class="actions">
        <button type="button" class="danger" onClick={() => void remove()}>
          Delete
        </button>
        <button type="button" onClick={close} ref={(element) => element?.focus()}>
          Cancel
        </button>
      </div>
    </div>
  );
}
