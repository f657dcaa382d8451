/** Events as they happen, the latest first. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, k8s } from "../api";
import { channel } from "../channel";
import { ageOf, cut } from "../format";
import { formatAddress } from "../router";
import { useKinds } from "../kinds";
import { kindNamed, type Kind } from "../discovery";

interface Involved {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly namespace?: string;
  readonly name?: string;
}
export interface ClusterEvent {
  readonly metadata: { readonly uid: string; readonly name: string; readonly namespace: string; readonly resourceVersion?: string; readonly creationTimestamp?: string };
  readonly involvedObject: Involved;
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string };
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
}

const KEPT = 200;
const SHOWN = 60;
const LONGEST = 400;

export function lastSeen(event: ClusterEvent): string {
  return event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "";
}

/** Return events with those of `more` in place of older ones of the same object, the latest first. */
export function merged(events: readonly ClusterEvent[], more: readonly ClusterEvent[], most = KEPT): ClusterEvent[] {
  const found = new Map(events.map((event) => [event.metadata.uid, event]));
  for (const event of more) found.set(event.metadata.uid, event);
  return [...found.values()].sort((a, b) => Date.parse(lastSeen(b)) - Date.parse(lastSeen(a))).slice(0, most);
}

export function useEvents(namespace: string, fields = ""): { readonly events: readonly ClusterEvent[]; readonly error: string; readonly loaded: boolean } {
  const [events, setEvents] = useState<readonly ClusterEvent[]>([]);
  const [error, setError] = useState("");
  const [loaded, setLoaded] = useState(false);
  useEffect(() => {
    const aborted = new AbortController();
    const path = namespace ? `/api/v1/namespaces/${encodeURIComponent(namespace)}/events` : "/api/v1/events";
    const filter = fields ? `&fieldSelector=${encodeURIComponent(fields)}` : "";
    let close: () => void = () => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const start = async () => {
      try {
        // without a limit: the API sorts by name, and the latest may be on any page
        const list = await k8s<{ items: ClusterEvent[]; metadata: { resourceVersion: string } }>(`${path}?resourceVersion=0${filter}`, { signal: aborted.signal });
        setEvents((before) => merged(before, list.items));
        setLoaded(true);
        setError("");
        watch(list.metadata.resourceVersion);
      } catch (problem) {
        if (aborted.signal.aborted) return;
        setLoaded(true);
        setError(problem instanceof ApiError ? problem.message : String(problem));
        timer = setTimeout(() => void start(), 5000);
      }
    };
    const watch = (version: string) => {
      close = channel().open(
        { path: `${path}?watch=true&resourceVersion=${version}&allowWatchBookmarks=true${filter}` },
        {
          lines: (lines) => {
            const found = lines as ReadonlyArray<{ type: string; object: ClusterEvent }>;
            const more = found.filter((each) => each.type === "ADDED" || each.type === "MODIFIED").map((each) => each.object);
            if (more.length) setEvents((before) => merged(before, more));
          },
          end: () => (timer = setTimeout(() => void start(), 2000)),
        },
      );
    };
    setEvents([]);
    setLoaded(false);
    void start();
    return () => {
      aborted.abort();
      clearTimeout(timer);
      close();
    };
  }, [namespace, fields]);
  return { events, error, loaded };
}

export function objectAddress(kinds: readonly Kind[], apiVersion: string, kind: string, namespace: string, name: string): string {
  const found = kindNamed(kinds, apiVersion, kind);
  return found && name ? formatAddress(["objects", found.id, found.namespaced ? namespace : "-", name]) : "";
}

export function EventList({ namespace = "", fields = "", title = "Events" }: { namespace?: string; fields?: string; title?: string }) {
  const { events, error, loaded } = useEvents(namespace, fields);
  const kinds = useKinds();
  return (
    <section aria-label={title} class="panel">
      <header>
        <h2>{title}</h2>
      </header>
      {error && <p class="error">{error}</p>}
      {!loaded && <p class="empty">Reading events …</p>}
      {loaded && !error && events.length === 0 && <p class="empty">No events.</p>}
      <ol class="events">
        {events.slice(0, SHOWN).map((event) => {
          const about = event.involvedObject;
          const where = objectAddress(kinds, about.apiVersion ?? "v1", about.kind ?? "", about.namespace ?? "", about.name ?? "");
          const name = `${(about.kind ?? "").toLowerCase()}/${about.name ?? ""}`;
          const count = event.series?.count ?? event.count ?? 1;
          return (
            <li key={event.metadata.uid} class={event.type === "Warning" ? "warning" : ""}>
              <time dateTime={lastSeen(event)} title={lastSeen(event)}>
                {ageOf(lastSeen(event))}
              </time>
              <b>{cut(event.reason ?? "", 60)}</b>
              {where ? <a href={where}>{cut(name, 120)}</a> : <span>{cut(name, 120)}</span>}
              <span class="message">
                {cut(event.message ?? "", LONGEST)}
                {count > 1 && <small> ×{count}</small>}
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
