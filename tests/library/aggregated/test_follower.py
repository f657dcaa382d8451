"""What is followed of a cluster, by lists and watches that end in many ways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

from steersman.library.aggregated.cluster import Cluster
from steersman.library.aggregated.follower import ClusterFollower, Meta
from steersman.machinery.errors.status import expired, service_unavailable
from steersman.work.backoff import Backoff


class Thing(msgspec.Struct):
    metadata: Meta
    size: int = 0


def thing(name: str, version: int, size: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "size": size}


class Scripted(Cluster):
    """Answers lists and watches from a script, then waits; `asked` are the targets."""

    def __init__(self, *script: Any) -> None:
        self._script = iter(script)
        self.asked: list[str] = []
        self.is_over = asyncio.Event()

    def _next(self, target: str) -> Any:
        self.asked.append(target.split("?")[1].split("timeoutSeconds")[0])
        given = next(self._script, None)
        if isinstance(given, Exception):
            raise given
        return given

    async def get(self, kind: Any, target: str) -> Any:
        version, *items = self._next(target)
        found = {"metadata": {"resourceVersion": str(version)}, "items": items}
        return msgspec.json.decode(json.dumps(found).encode(), type=kind)

    async def watch(self, target: str) -> AsyncGenerator[bytes, None]:
        events = self._next(target)
        if events is None:
            self.is_over.set()
            await asyncio.Event().wait()
        for kind, obj in events:
            yield json.dumps({"type": kind, "object": obj}).encode()


async def followed(*script: Any) -> tuple[dict[str, int], list[str]]:
    """The sizes of the things that are known at the end of a script, and how it was asked."""
    known: dict[str, int] = {}
    cluster = Scripted(*script)

    def replaced(found: list[Thing]) -> None:
        known.clear()
        known.update({each.metadata.name: each.size for each in found})

    following = ClusterFollower(
        cluster,
        "/things",
        Thing,
        replaced=replaced,
        changed=lambda found: known.__setitem__(found.metadata.name, found.size),
        gone=lambda name: known.pop(name),
    )
    await following.start()
    await cluster.is_over.wait()
    await following.stop()
    return known, cluster.asked


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steersman.library.aggregated.follower._BACKOFF", Backoff(0.0))


async def test_changes_are_told_as_they_come_and_a_watch_goes_on_where_the_last_one_ended() -> None:
    known, asked = await followed(
        (5, thing("a", 1), thing("b", 2)),
        [("ADDED", thing("c", 6, 1)), ("DELETED", thing("a", 7)), ("BOOKMARK", thing("", 9))],
        [("MODIFIED", thing("c", 10, 2))],
    )
    assert known == {"b": 0, "c": 2}
    assert [each.rpartition("resourceVersion=")[2] for each in asked[:1]] == ["0"]
    assert len(asked) == 4


@pytest.mark.parametrize(
    "end", [expired("too old"), [("ERROR", {"kind": "Status", "status": "Failure", "code": 410, "message": "too old"})]]
)
async def test_what_cannot_go_on_begins_anew(end: Any) -> None:
    known, asked = await followed((5, thing("a", 1)), end, (20, thing("b", 2)))
    assert known == {"b": 0}
    assert [each.startswith("resourceVersion=0") for each in asked] == [True, False, True, False]


async def test_what_fails_is_tried_again_and_what_was_known_stays() -> None:
    known, asked = await followed((5, thing("a", 1)), service_unavailable("gone fishing"))
    assert known == {"a": 0}
    assert [each.startswith("resourceVersion=0") for each in asked] == [True, False, False]


async def test_an_event_that_cannot_be_read_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    known, _ = await followed((5, thing("a", 1)), [("ADDED", {"metadata": 3})], (8, thing("b", 1)))
    assert known == {"b": 0}
    assert "cannot be followed" in caplog.text
