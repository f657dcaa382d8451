"""Measured parts; each row is printed as soon as it is known."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
from collections.abc import Callable, Iterator
from http.client import HTTPSConnection
from typing import Final

from bench.at_size.filling import Counts
from bench.at_size.server import TOKEN, Probe, Server

SMALL: Final = "/api/v1/namespaces/default/configmaps/small"
EVENTS: Final = "/api/v1/events"
PAGE: Final = 500
_HEAD: Final = (
    "| what | s | CPU s | MiB after | at the peak | holds, longest ms | a small GET, ms | /readyz, ms |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)


def run(server: Server, counts: Counts, watchers: int, wanted: list[str]) -> None:
    """Starts the server and measures the wanted parts of ALL."""
    print(_HEAD, flush=True)
    began = server.log_size() if server.log.exists() else 0
    server.start()
    if "start" in wanted:
        holds = server.holds(began)
        longest = f"{len(holds)}, {holds[0].ran * 1000:.0f}" if holds else "0"
        print(
            f"| start, until it is ready | {server.ready_seconds:.1f} | {server.cpu():.1f} | {server.resident():.0f} "
            f"| {server.peak():.0f} | {longest} | | |",
            flush=True,
        )
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
    print(
        f"| {what}{told} | {seconds:.2f} | {cpu:.2f} | {server.resident():.0f} | {server.peak():.0f} | {longest} "
        f"| {small} | {ready} |",
        flush=True,
    )
    tell_holds(server, since)


def tell_holds(server: Server, since: int) -> None:
    """The three longest holds since a byte of the log."""
    for hold in server.holds(since)[:3]:
        held = f"held {hold.ran * 1000:.0f} ms ({hold.seconds * 1000:.0f} by the clock)"
        print(f"    {held}: {hold.stack[:160]}", flush=True)


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


DESCRIBED: Final = ",".join(
    (
        "involvedObject.name=pod-00000107",
        "involvedObject.namespace=size-07",
        "involvedObject.kind=Pod",
        "involvedObject.uid=00000107-0000-4000-8000-000000000000",
    )
)


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
    token, found, taken = "", 0, list[float]()
    while len(taken) < most:
        answer, seconds = server.call(f"{EVENTS}?limit={PAGE}&continue={urllib.parse.quote(token)}")
        taken.append(seconds * 1000)
        token = json.loads(answer)["metadata"].get("continue", "")
        found += answer.count(b'"involvedObject"')
        if not token:
            break
        if between is not None:
            between(len(taken))
    taken.sort()
    middle, p99 = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
    return f"{len(taken)} pages, {found} objects, {middle:.1f} / {p99:.0f} / {taken[-1]:.0f} ms"


# At an old revision


def old(server: Server, counts: Counts, watchers: int) -> None:
    """Pages of a list while objects change; then after a compaction."""
    del counts, watchers
    path = "/api/v1/namespaces/default/events"
    for number in range(CHANGED):
        body = {"metadata": {"name": f"changing-{number}"}, "involvedObject": {"kind": "Pod", "namespace": "default"}}
        with contextlib.suppress(urllib.error.HTTPError):  # it is there already
            server.call(path, body)
    over = threading.Event()
    written = [0]

    def write() -> None:
        connection = Writer(server)
        while not over.is_set():
            for number in range(CHANGED):
                connection.patch(f"{path}/changing-{number}", {"reason": f"R{written[0]}"})
                written[0] += 1
                if over.is_set():
                    break

    writers = [threading.Thread(target=write) for _ in range(4)]
    with row(server, f"{OLD_PAGES} pages of {PAGE} while Events change") as more:
        for each in writers:
            each.start()
        more.append(pages(server, most=OLD_PAGES))
        over.set()
        for each in writers:
            each.join()
        more.append(f"{written[0]} writes")


OLD_PAGES: Final = 500
CHANGED: Final = 50


# Watchers


class Crew:
    """The clients of watchers.py, in a process of their own."""

    def __init__(self, server: Server, count: int, nodes: int, *flags: str) -> None:
        command = [sys.executable, "-m", "bench.at_size.watchers", str(server.port), str(count), str(nodes), *flags]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, line: str) -> dict[str, float]:
        """Send a command to the watchers and return their answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        document: dict[str, float] = json.loads(self._process.stdout.readline())
        return document

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


def told(stats: dict[str, float]) -> str:
    names = {"lists": "lists", "refused": "refused with 429", "gone": "410", "ended": "connections lost"}
    return ", ".join(f"{stats[key]:.0f} {name}" for key, name in names.items() if stats[key])


def storm(server: Server, counts: Counts, watchers: int) -> None:
    """All watchers begin; lose their connections and list anew; and are told 410, where the server has lost its own
    watch on etcd."""
    before = server.resident()
    with Crew(server, watchers, counts.nodes) as crew:
        with row(server, f"{watchers:,} watchers connect, list, and watch") as more:
            more.append(told(crew.say("wait")))
        print(f"    {(server.resident() - before) * 1024 / watchers:.0f} KiB a watcher", flush=True)
        with row(server, "all lose their connections and list anew") as more:
            time.sleep(0.5)
            crew.say("relist")
            more.append(told(crew.say("wait")))
        if server.network is not None:
            with row(server, "the watch on etcd is lost to a compaction") as more:
                server.network.lose()
                time.sleep(2)
                while server.waits():
                    time.sleep(0.1)
                more.append(told(crew.say("wait")))


def slow(server: Server, counts: Counts, watchers: int) -> None:
    """A tenth of the watchers does not read while 20 MB are written to what they watch; others watch the same, or
    nodes."""
    path = "/api/v1/namespaces/default/configmaps"
    with contextlib.suppress(urllib.error.HTTPError):
        server.call(path, {"metadata": {"name": "large"}})
    stalled = watchers // 10
    with (
        Crew(server, stalled, 1, f"--path={path}", f"--stalled={stalled}") as idle,
        Crew(server, READERS, 1, f"--path={path}") as readers,
        Crew(server, watchers - stalled - READERS, counts.nodes) as others,
    ):
        for each in (idle, readers, others):
            each.say("wait")
        print(f"    {server.resident():.0f} MiB with {watchers:,} watchers", flush=True)
        with row(server, f"{WRITES} writes of 10 KB, {stalled:,} watchers do not read, {READERS} do") as more:
            writer = Writer(server)
            for number in range(WRITES):
                writer.patch(f"{path}/large", {"data": {"a": f"T@{time.time_ns()} {number:05} {'x' * 10_000}"}})
            time.sleep(1)
            stats = readers.say("stats")
            more.append(
                f"readers had {stats['events']:.0f} events after {stats['p50']:.1f} ms (median), "
                f"{stats['max']:.0f} ms at most"
            )
            lost = stats["ended"] + others.say("stats")["ended"]
            more.append(
                f"{server.watches('configmaps') - READERS:.0f} of those who did not read are still there, "
                f"{lost:.0f} of the others were cut off"
            )


READERS: Final = 50
WRITES: Final = 2_000


class Writer:
    """Sends merge patches on a connection of its own."""

    def __init__(self, server: Server) -> None:
        self._connection = HTTPSConnection("127.0.0.1", server.port, context=server.context(), timeout=120)

    def patch(self, path: str, body: object) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/merge-patch+json"}
        self._connection.request("PATCH", path, json.dumps(body), headers)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"PATCH {path}: {answer.status}")


ALL: Final[dict[str, Callable[[Server, Counts, int], None] | None]] = {
    "start": None,
    "lists": lists,
    "old": old,
    "storm": storm,
    "slow": slow,
}
