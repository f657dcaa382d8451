"""What is measured, part by part, each row printed as soon as it is known."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Final

from bench.at_size.filling import Counts
from bench.at_size.server import Probe, Server

SMALL: Final = "/api/v1/namespaces/default/configmaps/small"
EVENTS: Final = "/api/v1/events"
PAGE: Final = 500
_HEAD: Final = (
    "| what | s | CPU s | MiB after | at the peak | holds, longest ms | a small GET, ms | /readyz, ms |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)


def run(server: Server, etcd: str, counts: Counts, watchers: int, wanted: list[str]) -> None:
    """Starts the server and measures the wanted parts of ALL."""
    print(_HEAD, flush=True)
    began = server.log_size() if server.log.exists() else 0
    server.start()
    if "start" in wanted:
        holds = server.holds(began)
        longest = f"{len(holds)}, {holds[0].ran * 1000:.0f}" if holds else "0"
        print(f"| start, until it is ready | {server.ready_seconds:.1f} | {server.cpu():.1f} | {server.resident():.0f} "
              f"| {server.peak():.0f} | {longest} | | |", flush=True)  # fmt: skip
        tell_holds(server, began)
    for name in wanted:
        if (part := ALL[name]) is not None:
            part(server, counts, watchers)


@contextlib.contextmanager
def row(server: Server, what: str) -> Iterator[list[str]]:
    """Measures what is done meanwhile, and prints the row; the list takes what else is to be told."""
    since, cpu, began = server.log_size(), server.cpu(), time.monotonic()
    server.forget_peak()
    more: list[str] = []
    with Probe(server, SMALL) as small, Probe(server, "/readyz") as ready:
        yield more
        seconds = time.monotonic() - began
        cpu = server.cpu() - cpu
    time.sleep(0.1)
    holds = server.holds(since)
    longest = f"{len(holds)}, {holds[0].ran * 1000:.0f}" if holds else "0"
    told = "".join(f"; {each}" for each in more)
    print(f"| {what}{told} | {seconds:.2f} | {cpu:.2f} | {server.resident():.0f} | {server.peak():.0f} | {longest} "
          f"| {small} | {ready} |", flush=True)  # fmt: skip
    tell_holds(server, since)


def tell_holds(server: Server, since: int) -> None:
    """The three longest holds since a byte of the log."""
    for hold in server.holds(since)[:3]:
        print(f"    held {hold.ran * 1000:.0f} ms ({hold.seconds * 1000:.0f} by the clock): {hold.stack[:160]}", flush=True)


# Lists


def lists(server: Server, counts: Counts, watchers: int) -> None:
    """Whole lists, pages, counts, and selectors."""
    with row(server, f"all {counts.events:,} Events, resourceVersion=0") as more:
        more.append(f"{server.size_of(f'{EVENTS}?resourceVersion=0')[0] >> 20} MiB")
    with row(server, "the same without a version"):
        server.size_of(EVENTS)
    with row(server, "four of them at once"):
        at_once(4, lambda: server.size_of(EVENTS))
    with row(server, "all Pods"):
        server.size_of("/api/v1/pods")
    with row(server, "Events of a namespace") as more:
        more.append(f"{server.size_of('/api/v1/namespaces/size-07/events')[0] >> 10} KiB")
    selected(server, "Events of a pod, as kubectl describe asks", "/api/v1/namespaces/size-07/events", DESCRIBED)
    selected(server, "Events of a pod in all namespaces", EVENTS, DESCRIBED)
    selected(server, "the same again", EVENTS, DESCRIBED)
    selected(server, "Events by type!=Normal", EVENTS, "type!=Normal")
    selected(server, "Pods of a node, first", "/api/v1/pods", "spec.nodeName=node-000042")
    selected(server, "Pods of a node, then", "/api/v1/pods", "spec.nodeName=node-000042")
    with row(server, "Pods by label") as more:
        more.append(f"{server.size_of('/api/v1/pods?labelSelector=app%3Ddb')[0]} bytes")
    with row(server, f"Events in pages of {PAGE}") as more:
        more.append(pages(server))
    with row(server, "Events counted by pages of one (limit=1), 100 times") as more:
        for _ in range(100):
            answer, _ = server.call(f"{EVENTS}?limit=1")
        more.append(f"{json.loads(answer)['metadata'].get('remainingItemCount')} remain")


DESCRIBED: Final = ",".join((
    "involvedObject.name=pod-00000107", "involvedObject.namespace=size-07", "involvedObject.kind=Pod",
    "involvedObject.uid=00000107-0000-4000-8000-000000000000",
))  # fmt: skip


def selected(server: Server, what: str, path: str, selector: str) -> None:
    with row(server, what) as more:
        size, _ = server.size_of(f"{path}?fieldSelector={urllib.parse.quote(selector)}")
        more.append(f"{size} bytes")


def at_once(count: int, work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def pages(server: Server, *, most: int = 100_000, between: Callable[[int], None] | None = None) -> str:
    """Reads Events page by page; how many pages, and how long one took."""
    token, taken, found = "", [], 0
    while len(taken) < most:
        answer, seconds = server.call(f"{EVENTS}?limit={PAGE}" + (f"&continue={urllib.parse.quote(token)}" if token else ""))
        taken.append(seconds * 1000)
        token = json.loads(answer)["metadata"].get("continue", "")
        found += answer.count(b'"involvedObject"')
        if not token:
            break
        if between is not None:
            between(len(taken))
    taken.sort()
    return f"{len(taken)} pages, {found} objects, {taken[len(taken) // 2]:.1f} / {taken[len(taken) * 99 // 100]:.0f} / " \
           f"{taken[-1]:.0f} ms"  # fmt: skip


ALL: Final[dict[str, Callable[[Server, Counts, int], None] | None]] = {"start": None, "lists": lists}
