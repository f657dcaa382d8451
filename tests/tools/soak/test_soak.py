"""Informers on a server that is written to and restarted (tools/soak), and what their model notices."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ServerProcess
from tests.tools.one_etcd.programs import needed
from tools.one_etcd.servers import KUBERNETES, STEERSMAN, ServersOnEtcd
from tools.soak import command as soak
from tools.soak import writers as soak_writers
from tools.soak.http_client import ConnectionLost, InTurn
from tools.soak.informer import BrokenPromise, Habits, Informer, Scope, View

SCOPE = Scope("/api/v1/configmaps", "v1", "ConfigMap")
RED = Scope(
    "/api/v1/namespaces/ns/configmaps", "v1", "ConfigMap", "color=red", selects=lambda obj: "red" in obj["data"]
)


@pytest.mark.slow
async def test_informers_know_what_is_there_though_the_server_is_killed(
    make_server: Callable[..., ServerProcess],
) -> None:
    server = make_server("--etcd-compaction-interval=2s")
    server.start()
    run = soak.Soak([soak.endpoint_of(server)], informers=20, rate=60, kills=6, seed=3)
    await soak.run_with_restarts(run, 15, [server], 6, random.Random(3))
    expected = {
        "events",
        "lists",
        "watch-lists",
        "watches resumed",
        "watches cut off",
        "informers killed",
        "restarts",
        "lists of exactly one version",
        "pages",
        "writes that informers were told of",
    }
    assert not expected - (+run.counts).keys()
    assert server.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("servers", [(STEERSMAN, STEERSMAN), (STEERSMAN, KUBERNETES)], ids=",".join)
async def test_informers_that_go_from_server_to_server_know_what_is_there(
    servers: tuple[str, str], tmp_path: Path
) -> None:
    needed(servers)
    several = await asyncio.to_thread(ServersOnEtcd(tmp_path, servers, ["--etcd-compaction-interval=5s"]).__enter__)
    try:
        run = soak.Soak(soak.endpoints_of(several), informers=20, rate=40, kills=6, seed=4)
        await soak.run_with_restarts(run, 20, several.servers, 8, random.Random(4))
        expected = {
            "events",
            "lists",
            "watch-lists",
            "watches resumed",
            "restarts",
            "pages",
            "lists of exactly one version",
            "writes that informers were told of",
        }
        assert not expected - (+run.counts).keys()
    finally:
        await asyncio.to_thread(several.__exit__)


def config_map(name: str = "a", version: int = 1, *, namespace: str = "ns", uid: str = "u", **data: str) -> Any:
    metadata = {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "data": data}


def event(type_: str, obj: Any) -> Any:
    return {"type": type_, "object": {"kind": "ConfigMap", "apiVersion": "v1", **obj}}


def bookmark(version: int, **annotations: str) -> Any:
    metadata = {"resourceVersion": str(version), **({"annotations": annotations} if annotations else {})}
    return event("BOOKMARK", {"metadata": metadata})


# Impossible histories


@pytest.fixture
def view() -> View:
    """Return a view of a list of version 7 with one object of version 5."""
    view = View(SCOPE)
    view.replace([config_map("a", 5)], 7)
    return view


def test_what_can_be_is_taken(view: View) -> None:
    view.apply(event("MODIFIED", config_map("a", 8, x="y")))
    view.apply(bookmark(10))
    view.apply(event("ADDED", config_map("b", 11, uid="v")))
    view.apply(event("DELETED", config_map("a", 12, x="y")))
    view.apply(event("ADDED", config_map("a", 13, uid="w")))
    assert {key[1]: obj["metadata"]["uid"] for key, obj in view.objects.items()} == {"a": "w", "b": "v"}
    assert (view.version, view.since, view.seen) == (13, 7, {8, 11, 12, 13})


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (event("ADDED", config_map("a", 8)), "was known"),
        (event("MODIFIED", config_map("b", 8)), "was unknown"),
        (event("DELETED", config_map("b", 8)), "was unknown"),
        (event("MODIFIED", config_map("a", 7)), "the watch was at 7 already"),
        (event("MODIFIED", config_map("a", 8, uid="v")), "another object"),
        (event("DELETED", config_map("a", 8, x="y")), "not as it was last"),
        (event("CHANGED", config_map("a", 8)), "an event of type CHANGED"),
        (
            {"type": "MODIFIED", "object": {"kind": "Secret", "apiVersion": "v1", **config_map("a", 8)}},
            "something else",
        ),
        (bookmark(6), "a bookmark at 6 after 7"),
    ],
)
def test_an_event_that_cannot_be_is_noticed(view: View, wrong: Any, why: str) -> None:
    with pytest.raises(BrokenPromise, match=why):
        view.apply(wrong)


def test_an_event_after_a_bookmark_that_was_ahead_of_it_is_noticed(view: View) -> None:
    view.apply(bookmark(9))
    with pytest.raises(BrokenPromise, match="the watch was at 9 already"):
        view.apply(event("ADDED", config_map("b", 9)))


def test_objects_that_a_selector_or_namespace_excludes_are_noticed() -> None:
    view = View(RED)
    view.replace([config_map("a", 5, red="")], 7)
    for wrong in (config_map("b", 8), config_map("b", 8, namespace="other", red="")):
        with pytest.raises(BrokenPromise, match="is not selected"):
            view.apply(event("ADDED", wrong))
        with pytest.raises(BrokenPromise, match="is not selected"):
            view.replace([wrong], 9)


@pytest.mark.parametrize(
    ("listed", "version", "why"),
    [
        ([config_map("a", 9)], 8, "is in a list of version 8"),
        ([config_map("a", 5), config_map("a", 6)], 8, "listed twice"),
        ([], 6, "a list is of 6, after 7 was told"),
    ],
)
def test_a_list_that_cannot_be_is_noticed(view: View, listed: list[Any], version: int, why: str) -> None:
    with pytest.raises(BrokenPromise, match=why):
        view.replace(listed, version)


def test_a_write_that_was_acknowledged_but_not_told_is_noticed(view: View) -> None:
    kind = soak_writers.KINDS[0]
    ledger = soak_writers.Ledger()
    for version in (5, 8, 9, 12):
        ledger.acknowledge(kind, config_map("a", version))
    view.apply(event("MODIFIED", config_map("a", 8)))
    assert ledger.check(kind, view) == 1
    view.apply(event("MODIFIED", config_map("a", 10)))
    with pytest.raises(BrokenPromise, match=r"not told of 1 writes, as of \('ns', 'a'\) at 9"):
        ledger.check(kind, view)


@pytest.mark.parametrize(
    ("listed", "right"),
    [
        ([config_map("w-1", 5), config_map("other", 6)], True),
        ([config_map("w-1", 5), config_map("w-1.18eca74dfeaa4135", 6)], True),
        ([config_map("w-1", 5, x="y")], False),
        ([], False),
        ([config_map("w-1", 5), config_map("w-2", 4)], False),
    ],
)
def test_a_writer_knows_what_its_objects_must_be(listed: list[Any], right: bool) -> None:
    kind = soak_writers.KINDS[0]
    writer = soak_writers.Writer(Script(), "w", soak_writers.Ledger(), Counter(), random.Random())
    writer.own[kind, ("ns", "w-1")] = config_map("w-1", 5)
    found = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in listed}
    with nullcontext() if right else pytest.raises(BrokenPromise, match="was acknowledged"):
        writer.check(kind, found)


def test_objects_that_differ_are_told(view: View) -> None:
    assert view.compare({("ns", "a"): config_map("a", 5)}) == ""
    assert "1 of 1 objects differ, the first is ('ns', 'a')" in view.compare({("ns", "a"): config_map("a", 6)})
    assert "1 of 2 objects differ" in view.compare({key: config_map(key[1], 5) for key in (("ns", "a"), ("ns", "b"))})


# Requests of an informer


class Script:
    """Server that gives prepared answers and keeps the requests. It ends the test after the last answer."""

    def __init__(self, *answers: Callable[[], Answer]) -> None:
        self.asked: list[str] = []
        self._answers = iter(answers)

    async def request(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
        self.asked.append(target.removeprefix("/api/v1/configmaps"))
        answer = next(self._answers, None)
        if answer is None:
            raise EndOfScript
        return answer()

    async def close(self) -> None:
        """There is nothing to close."""


class EndOfScript(Exception):
    pass


class Answer:
    def __init__(self, status: int, *pieces: bytes, cut_off: bool = False) -> None:
        self.status = status
        self._pieces = pieces
        self._cut_off = cut_off

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._cut_off:
            raise ConnectionLost("cut off")

    def close(self) -> None:
        """There is nothing to close."""


def listing(version: int, *objects: Any, following: str = "") -> Callable[[], Answer]:
    metadata = {"resourceVersion": str(version), **({"continue": following} if following else {})}
    return lambda: Answer(200, json.dumps({"metadata": metadata, "items": objects}).encode())


def watching(*events: Any, cut_off: bool = False) -> Callable[[], Answer]:
    data = b"".join(json.dumps(each).encode() + b"\n" for each in events)
    # In pieces that end anywhere.
    return lambda: Answer(200, *(data[at : at + 100] for at in range(0, len(data), 100)), cut_off=cut_off)


GONE = {"kind": "Status", "code": 410, "reason": "Expired"}
TOO_LARGE = {"kind": "Status", "code": 504, "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}
WATCH = "?watch=true&allowWatchBookmarks=true&timeoutSeconds=7"


async def play(*answers: Callable[[], Answer], **habits: Any) -> tuple[list[str], View]:
    """Return the requests of an informer, and its view at the end."""
    script = Script(*answers)
    informer = Informer(script, SCOPE, Habits(seconds=(7, 7.5), **habits), Counter(), random.Random(1))
    with pytest.raises(EndOfScript):
        await informer.run()
    return script.asked, informer.view


async def test_it_lists_and_then_watches_from_where_each_watch_ended() -> None:
    asked, view = await play(
        listing(7, config_map("a", 5)),
        watching(event("MODIFIED", config_map("a", 8)), bookmark(20)),
        watching(event("ADDED", config_map("b", 21, uid="v")), cut_off=True),
        watching(),
    )
    assert asked == [
        "?limit=500&resourceVersion=0",
        f"{WATCH}&resourceVersion=7",
        f"{WATCH}&resourceVersion=20",
        f"{WATCH}&resourceVersion=21",
        f"{WATCH}&resourceVersion=21",
    ]
    assert (sorted(view.objects), view.version) == ([("ns", "a"), ("ns", "b")], 21)


async def test_pages_are_asked_for_one_after_the_other() -> None:
    asked, view = await play(
        listing(7, config_map("a", 5), following="T"), listing(7, config_map("b", 6)), first_version="", page=1
    )
    assert asked == ["?limit=1", "?limit=1&continue=T", f"{WATCH}&resourceVersion=7"]
    assert len(view.objects) == 2


async def test_a_page_that_is_gone_is_followed_by_the_whole_list() -> None:
    asked, _ = await play(
        listing(7, config_map("a", 5), following="T"), lambda: Answer(410, json.dumps(GONE).encode()), listing(8)
    )
    assert asked[1:] == ["?limit=500&continue=T", "?resourceVersion=0", f"{WATCH}&resourceVersion=8"]


async def test_a_version_that_is_gone_is_followed_by_a_list() -> None:
    asked, _ = await play(listing(7), watching({"type": "ERROR", "object": GONE}), listing(9))
    assert asked[2] in ("?limit=500", "?resourceVersion=7")
    assert asked[3] == f"{WATCH}&resourceVersion=9"


async def test_a_watch_can_begin_with_what_there_is() -> None:
    asked, view = await play(
        watching(
            event("ADDED", config_map("b", 6)),
            event("ADDED", config_map("a", 5)),
            bookmark(7, **{"k8s.io/initial-events-end": "true"}),
            event("DELETED", config_map("a", 8)),
        ),
        watch_list=True,
    )
    assert asked == [f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", f"{WATCH}&resourceVersion=8"]
    assert (sorted(view.objects), view.version, view.since) == ([("ns", "b")], 8, 7)


async def test_a_connection_that_is_lost_is_made_again() -> None:
    def lost() -> Answer:
        raise ConnectionLost("refused")

    asked, _ = await play(lost, listing(7), lost, watching(bookmark(9)))
    assert asked == ["?limit=500&resourceVersion=0"] * 2 + [f"{WATCH}&resourceVersion={n}" for n in (7, 7, 9)]


async def test_requests_are_for_several_servers_in_turn() -> None:
    one, other = Script(listing(7), watching()), Script(watching(bookmark(9)))
    both = InTurn([one, other])
    informer = Informer(both, SCOPE, Habits(seconds=(7, 7.5)), Counter(), random.Random(1))
    with pytest.raises(EndOfScript):
        await informer.run()
    assert one.asked == ["?limit=500&resourceVersion=0", f"{WATCH}&resourceVersion=9"]
    assert other.asked == [f"{WATCH}&resourceVersion=7", f"{WATCH}&resourceVersion=9"]


async def test_a_server_that_is_behind_another_is_asked_for_what_is_newest() -> None:
    behind = lambda: Answer(504, json.dumps(TOO_LARGE).encode())  # noqa: E731
    asked, view = await play(listing(7), watching({"type": "ERROR", "object": GONE}), behind, listing(9), several=True)
    assert asked[3] == "?limit=500"
    assert view.version == 9


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([listing(7), lambda: Answer(504, json.dumps(TOO_LARGE).encode())], "the server has gone back"),
        ([lambda: Answer(500, b'{"code": 500}')], "it was refused: 500"),
        ([listing(7, config_map("b", 5), config_map("a", 5))], "not listed in order"),
        ([listing(7, following="T"), listing(8)], "a page at 8 after one at 7"),
        ([listing(7), lambda: Answer(200, b'{"type":"ADD')], "ended within an event"),
        ([listing(7), watching(event("ADDED", config_map("a", 7)))], "/api/v1/configmaps: ADDED .* was at 7 already"),
    ],
)
async def test_answers_that_cannot_be_are_noticed(answers: list[Callable[[], Answer]], why: str) -> None:
    informer = Informer(Script(*answers), SCOPE, Habits(), Counter(), random.Random(1))
    with pytest.raises(BrokenPromise, match=why):
        await informer.run()


async def test_a_list_of_exactly_one_version_that_differs_is_noticed() -> None:
    answers = listing(7), watching(event("ADDED", config_map("a", 8))), listing(8)
    informer = Informer(Script(*answers), SCOPE, Habits(audit=1), Counter(), random.Random(1))
    with pytest.raises(BrokenPromise, match=r"at 8: 1 of 1 objects differ"):
        await informer.run()
