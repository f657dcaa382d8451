#!/usr/bin/env python3
"""Path of a request: the calls of this project's functions, their files, and the number of changes from file to file.

    python -m tools.request_path [--only apply] [--files]

A whole server answers in process, on storage in memory, after each kind of request has been made some times, so that
what is made once is not counted. Prints a table; `--files` adds the calls of each file. Counts, not time: what a
reader has to follow, and what each detour adds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from bench.first_list import pod
from steersman import testing
from steersman.net.in_process import ClientResponse

ROOT: Final = Path(__file__).resolve().parents[1]
PODS: Final = "/api/v1/namespaces/default/pods"
WARM_UP: Final = 5
_COUNTED: Final = 3
_WATCHED: Final = "PUT with a watcher"
_PACKAGE: Final = str(ROOT / "src" / "steersman") + "/"
_OF_TESTS: Final = frozenset({"endpoints/filters/faults.py"})
"""Files that requests pass in servers of tests only."""

Request = Callable[[], Awaitable[None]]


class Travelled:
    """Calls since the start of a recording."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.changes = 0
        self._last = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            return
        file = file.removeprefix(_PACKAGE)
        if file in _OF_TESTS:
            return
        self.calls[file] += 1
        if file != self._last:
            self.changes += 1
            self._last = file


class Client:
    """Sends the requests whose path is counted, as the administrator."""

    def __init__(self, client: testing.Client) -> None:
        self._client = client
        self._number = 0

    async def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """The object in the answer. Ends the program if it is an error."""
        answer = await self._client.request(method, path, body, content_type=media)
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {answer.body.decode()}")
        return answer.json()

    async def get(self) -> None:
        await self.ask("GET", f"{PODS}/web")

    async def create(self) -> None:
        self._number += 1
        made = pod("web")  # of one template, as most are
        made["metadata"]["name"] = f"pod-{self._number}"
        await self.ask("POST", PODS, made)

    async def update(self) -> None:
        self._number += 1
        body = pod("web")
        body["metadata"]["labels"] = {"number": str(self._number)}
        await self.ask("PUT", f"{PODS}/web", body)

    async def apply(self) -> None:
        self._number += 1
        metadata = {"name": "web", "labels": {"applied": str(self._number)}}
        configuration = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        path = f"{PODS}/web?fieldManager=me&force=true"
        await self.ask("PATCH", path, configuration, "application/apply-patch+yaml")

    async def watch(self) -> tuple[ClientResponse, AsyncIterator[bytes]]:
        """A watch, and its events after those of the objects there are."""
        watching = await self._client.open("GET", f"{PODS}?watch=1&fieldSelector=metadata.name=web")
        events = aiter(watching)
        await anext(events)
        return watching, events


async def counted(client: Client, request: Request, *, watched: bool) -> Travelled:
    """Return the path of one request, when others like it have been made; with that of its event to one watcher.

    It is the shortest of a few: a token is judged again every second, which is none of the others' way.
    """
    for _ in range(WARM_UP):
        await request()
    paths = []
    for _ in range(_COUNTED):
        watch = await client.watch() if watched else None
        paths.append(path := Travelled())
        sys.setprofile(path)
        try:
            await request()
            if watch is not None:
                await anext(watch[1])
        finally:
            sys.setprofile(None)
        if watch is not None:
            await watch[0].aclose()
    return min(paths, key=lambda path: path.calls.total())


async def measure(only: str) -> dict[str, Travelled]:
    """The path of each kind of request."""
    async with testing.Environment() as environment:
        client = Client(environment.client())
        await client.ask("POST", PODS, pod("web"))
        kinds: dict[str, Request] = {
            "GET": client.get,
            "POST": client.create,
            "PUT": client.update,
            "apply": client.apply,
            _WATCHED: client.update,
        }
        return {
            name: await counted(client, request, watched=name == _WATCHED)
            for name, request in kinds.items()
            if only in name
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="requests whose name has this in it")
    parser.add_argument("--files", action="store_true", help="the calls of each file too")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.only))
    print("| of a Pod | calls | files | changes of file |")
    print("|---|--:|--:|--:|")
    for name, path in found.items():
        print(f"| {name} | {path.calls.total()} | {len(path.calls)} | {path.changes} |")
    if arguments.files:
        for name, path in found.items():
            print(f"\n{name}")
            for file, count in sorted(path.calls.items()):
                print(f"{count:6} {file}")


if __name__ == "__main__":
    main()
