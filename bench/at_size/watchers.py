"""Many clients in one process, each with a connection of its own: they list, watch from there, and list anew when told.

    python -m bench.at_size.watchers PORT COUNT NODES          of each two one watches the pods of a node, one the node
    python -m bench.at_size.watchers PORT COUNT NODES --path PATH --stalled N     all the same; N of them stop reading

Each line on the standard input is answered with a line of JSON: `wait` once all have watches, `stats` at once, `relist`
has all of them close their connections and begin again, `quit`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import resource
import ssl
import sys
import threading
import time
from typing import Final, cast

import uvloop

from bench.at_size.server import TOKEN

_VERSION: Final = re.compile(rb'"resourceVersion":"(\d+)"')
_SENT: Final = re.compile(rb"T@(\d+)")
_EVENT: Final = re.compile(rb'\{"type":"(?:ADDED|MODIFIED|DELETED)"')
_AT_ONCE: Final = 200
"""Connections that are being made at a time."""
_BACKOFF: Final = (0.8, 1.6)
"""Seconds before a client lists anew, as client-go's reflectors wait."""


class Crew:
    """All clients, and what they have seen."""

    def __init__(self, port: int, paths: list[str], stalled: int) -> None:
        self.port = port
        self.clients = [Client(self, path, is_stalled=number < stalled) for number, path in enumerate(paths)]
        self.places = asyncio.Semaphore(_AT_ONCE)
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.lists = self.refused = self.gone = self.ended = self.events = 0
        self.delays: list[float] = []

    def stats(self) -> dict[str, float]:
        """Counts since the last time, and how many watch now; delays of events in ms."""
        ordered = sorted(self.delays)
        found = {
            "watching": sum(each.is_watching for each in self.clients),
            "lists": self.lists,
            "refused": self.refused,
            "gone": self.gone,
            "ended": self.ended,
            "events": self.events,
            "p50": ordered[len(ordered) // 2] if ordered else 0,
            "max": ordered[-1] if ordered else 0,
        }
        self.lists = self.refused = self.gone = self.ended = self.events = 0
        self.delays = []
        return found

    async def all_watch(self) -> None:
        while not all(each.is_watching for each in self.clients):  # noqa: ASYNC110  # they are many and tell nobody
            await asyncio.sleep(0.02)


class Client(asyncio.Protocol):
    """A reflector with one connection, which it uses for its list and then for its watch."""

    def __init__(self, crew: Crew, path: str, *, is_stalled: bool) -> None:
        self._crew = crew
        self._path, _, self._selector = path.partition("?")
        self._is_stalled = is_stalled
        self.is_watching = False
        self._is_head = True
        self._data = b""
        self._known = "0"
        self._transport: asyncio.Transport | None = None

    async def connect(self) -> None:
        """Begins. Tries again for as long as nobody listens."""
        async with self._crew.places:
            while True:
                try:
                    await asyncio.get_running_loop().create_connection(
                        lambda: self, "127.0.0.1", self._crew.port, ssl=self._crew.context, ssl_handshake_timeout=120
                    )
                except OSError:
                    await asyncio.sleep(1)
                else:
                    return

    def again(self) -> None:
        """Closes the connection; what follows is a list on a new one."""
        self.is_watching = False
        self._known = ""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._list()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_watching = False
        self._crew.ended += 1
        self._transport = None
        if not self._is_stalled:
            asyncio.get_running_loop().call_later(random.uniform(*_BACKOFF), self._begin)

    def _begin(self) -> None:
        _tasks.add(task := asyncio.ensure_future(self.connect()))
        task.add_done_callback(_tasks.discard)

    def _list(self) -> None:
        self.is_watching, self._is_head, self._data = False, True, b""
        self._ask(f"resourceVersion={self._known}&" if self._known else "")

    def _ask(self, query: str) -> None:
        if self._transport is not None:
            self._transport.write(
                f"GET {self._path}?{query}{self._selector} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
            )

    def data_received(self, data: bytes) -> None:
        if self.is_watching:
            self._watched(data)
            return
        self._data += data
        head, _, body = self._data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if not (len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self._crew.refused += 1
            asyncio.get_running_loop().call_later(random.uniform(*_BACKOFF), self._list)
            return
        self._crew.lists += 1
        version = _VERSION.search(body)
        assert version is not None, body[:200]
        self._known, self._data = version[1].decode(), b""
        self.is_watching = True
        self._ask(f"watch=1&allowWatchBookmarks=true&resourceVersion={self._known}&")
        if self._is_stalled and self._transport is not None:
            self._transport.pause_reading()

    def _watched(self, data: bytes) -> None:
        crew = self._crew
        crew.events += len(_EVENT.findall(data))
        if sent := _SENT.search(data):
            crew.delays.append((time.time_ns() - int(sent[1])) / 1e6)
        if b'"code":410' in data:
            crew.gone += 1
            self._known = ""
        if data.endswith(b"0\r\n\r\n"):  # the end of the watch: its connection is good for the list that follows
            self.is_watching = False
            asyncio.get_running_loop().call_later(random.uniform(*_BACKOFF), self._list)


_tasks: Final[set[asyncio.Task[None]]] = set()


async def run(crew: Crew) -> None:
    for client in crew.clients:
        client._begin()
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line.strip())
        loop.call_soon_threadsafe(lines.put_nowait, "quit")

    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) != "quit":
        if line == "relist":
            for number, client in enumerate(crew.clients):
                client.again()
                if not number % 100:
                    await asyncio.sleep(0)
        if line == "wait":
            await crew.all_watch()
        print(json.dumps(crew.stats()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("nodes", type=int)
    parser.add_argument("--path", default="")
    parser.add_argument("--stalled", type=int, default=0)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    paths = []
    for number in range(options.count):
        node = f"node-{number // 2 % options.nodes:06}"
        if options.path:
            paths.append(options.path)
        elif number % 2:
            paths.append(f"/api/v1/nodes?fieldSelector=metadata.name%3D{node}")
        else:
            paths.append(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")

    async def start() -> None:
        await run(Crew(options.port, paths, options.stalled))

    uvloop.run(start())


if __name__ == "__main__":
    main()
