/** Kinds that the API server serves. */
import { k8s } from "./api";

export interface Kind {
  /** The address of the kind: `pods`, `deployments.apps`, `widgets.v1.example.com` never: the preferred version only. */
  readonly id: string;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
}

interface AggregatedResource {
  readonly resource: string;
  readonly responseKind?: { readonly kind: string };
  readonly scope: string;
  readonly verbs?: readonly string[];
  readonly shortNames?: readonly string[];
}
interface AggregatedGroup {
  readonly metadata: { readonly name?: string };
  readonly versions?: ReadonlyArray<{ readonly version: string; readonly resources?: readonly AggregatedResource[] }>;
}

const AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList";

/** Return all kinds in the preferred version of each, sorted by group and name. */
export async function discover(): Promise<Kind[]> {
  const answers = await Promise.all(
    ["/api", "/apis"].map((path) => k8s<{ items?: AggregatedGroup[] }>(path, { accept: AGGREGATED })),
  );
  return kindsOf(answers.flatMap((answer) => answer.items ?? []));
}

export function kindsOf(groups: readonly AggregatedGroup[]): Kind[] {
  const found = new Map<string, Kind>();
  for (const group of groups) {
    const name = group.metadata.name ?? "";
    for (const { version, resources } of group.versions ?? []) {
      for (const each of resources ?? []) {
        const id = name ? `${each.resource}.${name}` : each.resource;
        if (found.has(id) || !each.verbs?.includes("list") || !each.responseKind) continue;
        found.set(id, {
          id,
          group: name,
          version,
          plural: each.resource,
          kind: each.responseKind.kind,
          namespaced: each.scope === "Namespaced",
          verbs: each.verbs,
          shortNames: each.shortNames ?? [],
        });
      }
    }
  }
  return [...found.values()].sort((a, b) => a.group.localeCompare(b.group) || a.plural.localeCompare(b.plural));
}

/** The path of a kind's objects, or of one object. */
export function pathOf(kind: Kind, namespace = "", name = ""): string {
  const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
  const inside = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${inside}/${kind.plural}${name ? `/${encodeURIComponent(name)}` : ""}`;
}

/** The kind of an apiVersion and kind, as in owner references and events. */
export function kindNamed(kinds: readonly Kind[], apiVersion: string, name: string): Kind | undefined {
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  return kinds.find((each) => each.kind === name && each.group === group);
}
