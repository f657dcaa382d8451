"""Recordings of servers that lie: what is written can be read, and what cannot be recorded is said."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from steersman.client import client as clients
from steersman.client.client import Client
from steersman.dumps.recording import Recorder
from steersman.dumps.recordings import open_to_append, read_changes
from tests.controllers.waiting import eventually

RESOURCE: Final = {
    "resource": "configmaps",
    "responseKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
    "scope": "Namespaced",
    "verbs": ["get", "list", "watch"],
}
DISCOVERY: Final = {"items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [RESOURCE]}]}]}
GOOD: Final[dict[str, Any]] = {"metadata": {"name": "good", "namespace": "d", "resourceVersion": "3"}}
LIST: Final = "/api/v1/configmaps"


class Said:
    """A response with a body."""

    status = 200

    def __init__(self, body: bytes) -> None:
        self._body = body

    def header(self, name: str) -> str:
        return "application/json" if name == "content-type" else ""

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body

    async def aclose(self) -> None:
        """Do nothing: the whole body is there."""


class Liar:
    """A transport to a server of ConfigMaps: `list_of` returns the body for a target of a list, `events` a watch's."""

    def __init__(self, list_of: Callable[[str], bytes], events: bytes = b"") -> None:
        self._list_of = list_of
        self._events = events
        self.watches = asyncio.Queue[str]()

    async def send(self, method: str, target: str, fields: Sequence[tuple[str, str]], body: bytes) -> Said:
        assert method == "GET"
        path = target.partition("?")[0]
        if path in ("/api", "/apis"):
            return Said(json.dumps(DISCOVERY if path == "/api" else {"items": []}).encode())
        if path != LIST:
            return Said(b'{"metadata":{},"items":[]}')
        if "watch=" not in target:
            return Said(self._list_of(target))
        self.watches.put_nowait(target)
        return Said(self._events)

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


def page(*items: object, token: str = "") -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "7", "continue": token}, "items": items}).encode()


async def recorded(liar: Liar, file: Path, has_ended: Callable[[], Awaitable[object]]) -> list[str]:
    """Record until something has happened after the first watch began, and return types and names of the changes."""
    recorder = Recorder(Client(liar, "test"), open_to_append(file), secrets=False, most_bytes=1 << 30)
    running = asyncio.ensure_future(recorder.run())
    async with asyncio.timeout(60):
        await liar.watches.get()
        await eventually(has_ended)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return [f"{each.type} {each.object['metadata']['name']}" for each in read_changes(file)]


DEEP: Final[Any] = json.loads('{"a":' * 600 + "1" + "}" * 600)


@pytest.mark.parametrize(
    "lie",
    [
        {**GOOD, "data": DEEP},
        {"metadata": {**GOOD["metadata"], "name": "large"}, "data": {"a": "x" * (9 << 20)}},
    ],
    ids=["deep", "large"],
)
async def test_what_no_replay_could_read_is_left_out(
    lie: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = {"metadata": {"name": "other", "namespace": "d"}}

    async def is_said() -> bool:
        return "is left out: too large or too deep for a replay" in caplog.text

    assert await recorded(Liar(lambda _: page(lie, other)), tmp_path / "a.rec", is_said) == ["PRESENT other"]


@pytest.mark.parametrize(
    "lie",
    [7, [], "text", {}, {"metadata": []}, {"metadata": {"name": 7}}, {"metadata": {"name": "a", "namespace": {}}}],
    ids=str,
)
async def test_events_that_are_no_objects_are_refused_and_the_recording_goes_on(
    lie: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events = json.dumps({"type": "ADDED", "object": lie}).encode() + b"\n"

    async def is_said() -> bool:
        return "configmaps: " in caplog.text

    assert await recorded(Liar(lambda _: page(GOOD), events), tmp_path / "a.rec", is_said) == ["PRESENT good"]


async def test_a_list_without_end_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(clients, "MAX_PAGES", 30)
    asked: list[str] = []

    def endless(target: str) -> bytes:
        asked.append(target)
        return page(GOOD, token="" if len(asked) > 30 else str(len(asked)))

    async def is_said() -> bool:
        return "configmaps has more than 30 pages" in caplog.text

    assert await recorded(Liar(endless), tmp_path / "a.rec", is_said) == ["PRESENT good"]


async def test_a_recording_that_cannot_be_written_ends_with_the_error(tmp_path: Path) -> None:
    file = tmp_path / "a.rec"
    file.write_bytes(b"")
    descriptor = os.open(file, os.O_RDONLY)
    recorder = Recorder(Client(Liar(lambda _: page(GOOD)), "test"), descriptor, secrets=False, most_bytes=1 << 30)
    try:
        async with asyncio.timeout(60):
            with pytest.raises(OSError, match="Bad file descriptor"):
                await recorder.run()
    finally:
        os.close(descriptor)
