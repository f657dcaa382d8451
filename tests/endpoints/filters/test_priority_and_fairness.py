"""Requests wait for seats, around the handlers of a small server."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable

import pytest

from steersman.api.flowcontrol.v1 import PriorityLevelConfiguration
from steersman.endpoints.handlers import watch
from steersman.flowcontrol.fairness import Fairness
from steersman.flowcontrol.metrics import register_metrics
from steersman.machinery.identity.action import Action
from steersman.machinery.metrics import Registry
from steersman.machinery.values import times
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer, Request, Response
from tests.endpoints.small_server import SmallServer, Watch
from tests.flowcontrol.configurations import level, paths, schema

NOTES = "/api/v1/namespaces/ns/configmaps"
ACCOUNTS = "/api/v1/namespaces/ns/serviceaccounts"


class Hanging:
    """A handler that answers when the test says so."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self._begun = asyncio.Event()

    async def __call__(self, request: object) -> Response:
        self._begun.set()
        await self.go_on.wait()
        return Response(200, [], b"done")

    async def reached(self) -> None:
        """Wait until a request is in the handler."""
        await self._begun.wait()


async def queued(fairness: Fairness) -> None:
    """Wait until a request waits for a seat."""
    for _ in range(1_000):
        if fairness.levels["own"].seats.waiting:
            return
        await asyncio.sleep(0)
    raise AssertionError("nothing waits")


Start = Callable[..., Awaitable[SmallServer]]


async def unread(small: SmallServer, target: str, user: str) -> tuple[int, Request]:
    """Return the status of an answer that the client does not read, and the request."""
    path, _, query = target.partition("?")
    headers = Headers.from_pairs([("authorization", f"Bearer {user}")])
    request = Request("GET", path, query, headers, EMPTY_BODY, Peer("127.0.0.1", 1))
    response = await small.server.handler(request)
    return response.status, request


@pytest.fixture
async def fairness() -> Fairness:
    """A server with one seat."""
    loop = asyncio.get_running_loop()
    return Fairness(1, clock=times.monotonic, wall_clock=times.unix_now, later=loop.call_later)


def configure(fairness: Fairness, of_alice: PriorityLevelConfiguration) -> None:
    everything = schema("of-alice", of_alice.metadata.name, 500, "alice")
    fairness.digest(
        [of_alice, level("catch-all", 0)], [everything, paths("paths", of_alice.metadata.name, 400, "alice")]
    )


async def test_an_answer_says_by_which_schema_and_level_it_was_let_in(start_server: Start, fairness: Fairness) -> None:
    small = await start_server({"/hang": Hanging()}, fairness=fairness)
    configure(fairness, level("own"))
    answer = await small.get(NOTES, user="alice")
    assert answer.status == 200
    assert answer.headers["x-kubernetes-pf-flowschema-uid"] == "of-alice-uid"
    assert answer.headers["x-kubernetes-pf-prioritylevel-uid"] == "own-uid"
    assert fairness.levels["own"].seats.is_idle


async def test_a_request_waits_for_a_seat_and_gets_it(start_server: Start, fairness: Fairness) -> None:
    hanging = Hanging()
    small = await start_server({"/hang": hanging}, fairness=fairness)
    configure(fairness, level("own", queues=1))
    first = asyncio.ensure_future(small.get("/hang", user="alice"))
    await hanging.reached()
    second = asyncio.ensure_future(small.get(NOTES, user="alice"))
    await queued(fairness)
    assert (await small.get(NOTES, user="root")).status == 200
    hanging.go_on.set()
    assert (await first).status == 200
    assert (await second).status == 200
    assert fairness.levels["own"].seats.is_idle
    assert fairness.levels["own"].counts["of-alice"].dispatched == 1


@pytest.mark.parametrize("target", [NOTES, f"{NOTES}?watch=1", f"{NOTES}/{'n' * 10_000}", "/" + "p" * 10_000])
async def test_a_refusal_that_nobody_reads_keeps_no_seat(start_server: Start, fairness: Fairness, target: str) -> None:
    small = await start_server({}, fairness=fairness)
    everybody = schema("everybody", "own", 500, "mallory")
    fairness.digest([level("own")], [everybody, paths("paths", "own", 400, "mallory")])
    status, request = await unread(small, target, "mallory")
    assert status == 403
    assert fairness.levels["own"].seats.is_idle
    assert fairness.running == [0, 0]
    assert request.on_request_end is None
    assert not fairness.watches.interested(Action("create", "", "v1", "configmaps", "", "ns", ""))


@pytest.mark.parametrize(("size", "is_kept"), [(4096, False), (4097, True)])
async def test_a_small_answer_that_nobody_reads_keeps_no_seat(
    start_server: Start, fairness: Fairness, size: int, is_kept: bool
) -> None:
    async def answer(request: object) -> Response:
        return Response(200, [], [b"x" * 96, b"x" * (size - 96)])

    small = await start_server({"/answer": answer}, fairness=fairness)
    configure(fairness, level("own"))
    _, request = await unread(small, "/answer", "alice")
    assert fairness.levels["own"].seats.is_idle is not is_kept
    if request.on_request_end is not None:
        request.on_request_end()
    assert fairness.levels["own"].seats.is_idle


def is_idle(fairness: Fairness) -> bool:
    return fairness.levels["own"].seats.is_idle


async def test_a_watch_whose_first_objects_nobody_reads_keeps_no_seat(
    start_server: Start, fairness: Fairness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SEAT_SECONDS", 0.01)
    small = await start_server({}, fairness=fairness)
    configure(fairness, level("own"))
    for name in "abcde":
        await small.note(name, text="x" * 40_000)
    response = await small.open("GET", f"{NOTES}?watch=1", user="alice")
    assert not is_idle(fairness)
    for _ in range(1_000):
        if is_idle(fairness):
            break
        await asyncio.sleep(0.005)
    assert is_idle(fairness)
    watching = Watch(response)
    assert [await watching.told() for _ in range(5)] == [f"ADDED {name}" for name in "abcde"]


async def test_an_unread_refusal_keeps_no_place_where_requests_are_counted_alone(start_server: Start) -> None:
    small = await start_server({}, max_requests_in_flight=1)
    for _ in range(2):
        assert (await unread(small, "/" + "p" * 10_000, "mallory"))[0] == 403


async def test_where_there_is_no_queue_it_is_refused(start_server: Start, fairness: Fairness) -> None:
    hanging = Hanging()
    small = await start_server({"/hang": hanging}, fairness=fairness)
    configure(fairness, level("own"))
    first = asyncio.ensure_future(small.get("/hang", user="alice"))
    await hanging.reached()
    refused = await small.get(NOTES, user="alice")
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert refused.text == "Too many requests, please try again later.\n"
    assert refused.headers["x-kubernetes-pf-prioritylevel-uid"] == "own-uid"
    hanging.go_on.set()
    await first
    assert (await small.get(NOTES, user="alice")).status == 200


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        (NOTES, ("LIST", "", "", "v1", "configmaps", "", "namespace")),
        (f"{NOTES}/a", ("GET", "", "", "v1", "configmaps", "", "resource")),
        ("/apis/none/v1/namespaces/ns/nothing/a/part", ("GET", "", "", "", "", "", "resource")),
        (f"{NOTES}/a/nothing", ("GET", "", "", "", "", "", "resource")),
        (f"/api/v1/{'n' * 1000}", ("LIST", "", "", "", "", "", "cluster")),
        ("/apis/other.example/v1/anything", ("LIST", "", "other.example", "v1", "", "", "cluster")),
        ("/nothing", ("GET", "", "", "", "", "", "")),
    ],
)
async def test_what_is_counted_of_a_refused_request_names_what_is_served_alone(
    start_server: Start, fairness: Fairness, target: str, labels: tuple[str, ...]
) -> None:
    hanging = Hanging()
    small = await start_server({"/hang": hanging}, fairness=fairness)
    small.server.delegated["/apis/other.example/v1"] = hanging
    configure(fairness, level("own"))
    first = asyncio.ensure_future(small.get("/hang", user="alice"))
    await hanging.reached()
    for _ in range(2):
        assert (await small.get(target, user="alice")).status == 429
    metrics = small.config.metrics
    assert metrics.total.value((*labels, "apiserver", "429")) == 2
    assert metrics.terminations.value((labels[0], *labels[2:], "apiserver", "429")) == 2
    hanging.go_on.set()
    await first


async def test_a_quarter_of_its_time_is_how_long_a_request_waits(start_server: Start, fairness: Fairness) -> None:
    hanging = Hanging()
    small = await start_server({"/hang": hanging}, fairness=fairness)
    configure(fairness, level("own", queues=1))
    first = asyncio.ensure_future(small.get("/hang", user="alice"))
    await hanging.reached()
    assert (await small.get(NOTES + "?timeout=2s", user="alice")).status == 429
    counts = fairness.levels["own"].counts["of-alice"]
    assert counts.rejected == {"time-out": 1}
    assert not fairness.levels["own"].seats.waiting
    hanging.go_on.set()
    await first


async def test_who_goes_away_leaves_the_queue(start_server: Start, fairness: Fairness) -> None:
    hanging = Hanging()
    small = await start_server({"/hang": hanging}, fairness=fairness)
    configure(fairness, level("own", queues=1))
    first = asyncio.ensure_future(small.get("/hang", user="alice"))
    await hanging.reached()
    second = asyncio.ensure_future(small.get(NOTES, user="alice"))
    seats = fairness.levels["own"].seats
    await queued(fairness)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert not seats.waiting
    hanging.go_on.set()
    await first
    assert seats.is_idle


async def test_a_handler_that_fails_gives_its_seat_back(start_server: Start, fairness: Fairness) -> None:
    async def broken(request: object) -> None:
        raise RuntimeError("a secret")

    small = await start_server({"/broken": broken}, fairness=fairness)
    configure(fairness, level("own"))
    assert (await small.get("/broken", user="alice")).status == 500
    assert fairness.levels["own"].seats.is_idle
    assert fairness.running == [0, 0]


def waits(fairness: Fairness) -> dict[tuple[str, ...], float]:
    """Return the number of counted waits by level, schema, and whether a queue had space."""
    registry = Registry()
    register_metrics(registry, fairness)
    found = {}
    for line in "\n".join(registry.expose()).splitlines():
        match = re.match(r"apiserver_flowcontrol_request_wait_duration_seconds_count\{(.*)\} (\S+)", line)
        if match and 'priority_level="own"' in line and float(match[2]):
            found[tuple(re.findall(r'"([^"]*)"', match[1]))] = float(match[2])
    return found


async def test_a_wait_in_vain_counts_as_one_in_a_queue_and_as_no_dispatch(
    start_server: Start, fairness: Fairness
) -> None:
    hanging = Hanging()
    small = await start_server({"/hang": hanging}, fairness=fairness)
    configure(fairness, level("own", queues=1))
    first = asyncio.ensure_future(small.get("/hang", user="alice"))
    await hanging.reached()
    assert (await small.get(NOTES + "?timeout=2s", user="alice")).status == 429
    hanging.go_on.set()
    await first
    assert fairness.levels["own"].counts["of-alice"].dispatched == 0
    assert waits(fairness) == {("own", "of-alice", "true"): 1.0, ("own", "paths", "true"): 1.0}


async def test_writes_that_are_no_events_are_not_held_against_watches(start_server: Start, fairness: Fairness) -> None:
    small = await start_server({}, fairness=fairness)
    configure(fairness, level("own"))
    await small.ask("POST", f"{ACCOUNTS}/a/token", {}, user="alice")
    counts = fairness.levels["own"].counts
    assert sum(counts["of-alice"].watch_series()[:-1]) == 0
    await small.ask("PATCH", f"{NOTES}/a", {}, user="alice")
    assert sum(counts["of-alice"].watch_series()[:-1]) == 1
    await small.ask("DELETE", "/nothing", user="alice")
    assert sum(counts["paths"].watch_series()[:-1]) == 1


async def test_the_line_of_a_request_tells_its_turn(
    start_server: Start, fairness: Fairness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "steersman.http")
    small = await start_server({}, fairness=fairness, log_requests=True)
    configure(fairness, level("own"))
    await small.get(NOTES, user="alice")
    [line] = [each for each in caplog.messages if each.startswith("HTTP ")]
    assert ' apf_pl="own" apf_fs="of-alice" apf_iseats=1 apf_fseats=0 apf_additionalLatency="0s" ' in line
    assert re.search(r' apf_execution_time="[0-9.]+(ns|µs|ms)" resp=200$', line)
