"""Faults of requests and watches, as clients see them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from steersman.faults.fault import InvalidFault
from steersman.net.in_process import ClientResponse
from steersman.net.message import BodyAborted
from steersman.testing import Environment, User
from steersman.testing.faults import Faults
from tests.controllers.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/api/v1/namespaces/default/configmaps"
NAMES = (f"a{number}" for number in count())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment() -> AsyncIterator[Environment]:
    users = (User("admin", ("system:masters",)), User("jane", ("system:masters", "staff")))
    async with Environment(users=users) as running:
        yield running


@pytest.fixture
def faults(environment: Environment) -> Faults:
    environment.faults.clear()
    return environment.faults


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (
            409,
            "Conflict",
            'Operation cannot be fulfilled on configmaps "{}": the object has been modified; please apply your changes to '
            "the latest version and try again",
        ),
        (404, "NotFound", 'configmaps "{}" not found'),
        (403, "Forbidden", 'configmaps "{}" is forbidden: injected fault'),
        (429, "TooManyRequests", "Too many requests, please try again later."),
        (500, "InternalError", "injected fault: 500"),
        (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
    ],
)
async def test_errors_have_the_usual_reason_and_message(
    environment: Environment, faults: Faults, code: int, reason: str, message: str
) -> None:
    name, client = next(NAMES), environment.client()
    await client.post(PATH, config_map(name))
    fault = faults.add(verb="update", resource="configmaps", code=code, retry_after=3, times=1)
    answer = await client.put(f"{PATH}/{name}", config_map(name))
    assert (answer.status, answer.json()["reason"], answer.json()["message"]) == (code, reason, message.format(name))
    assert answer.headers["retry-after"] == "3"
    assert (await client.put(f"{PATH}/{name}", config_map(name))).status == 200
    assert (fault.matched, fault.injected) == (2, 1)
    (hit,) = fault.last
    assert (hit.user, hit.verb, hit.resource, hit.namespace, hit.name) == (
        "admin",
        "update",
        "configmaps",
        "default",
        name,
    )


async def test_a_lost_answer_is_of_a_write_that_was_made(environment: Environment, faults: Faults) -> None:
    name, client = next(NAMES), environment.client()
    with faults.add(verb="create", lose_answer=True), pytest.raises(BodyAborted):
        await client.post(PATH, config_map(name))
    assert (await client.get(f"{PATH}/{name}")).status == 200


async def test_a_cut_request_is_not_carried_out(environment: Environment, faults: Faults) -> None:
    name, client = next(NAMES), environment.client()
    with faults.add(verb="create", cut=True), pytest.raises(BodyAborted):
        await client.post(PATH, config_map(name))
    assert (await client.get(f"{PATH}/{name}")).status == 404


async def test_a_lost_list_releases_its_answer(environment: Environment, faults: Faults) -> None:
    with faults.add(verb="list", lose_answer=True), pytest.raises(BodyAborted):
        await environment.client().get("/apis/rbac.authorization.k8s.io/v1/clusterroles")


async def test_requests_and_answers_wait(environment: Environment, faults: Faults) -> None:
    name, client = next(NAMES), environment.client()
    loop = asyncio.get_running_loop()
    began = loop.time()
    faults.add(verb="create", delay=0.2, delay_after=0.05)
    creation = asyncio.ensure_future(client.post(PATH, config_map(name)))
    await asyncio.sleep(0.01)
    assert (await client.get(f"{PATH}/{name}")).status == 404
    assert (await creation).status == 201
    assert loop.time() - began >= 0.25


@pytest.mark.parametrize(
    "wanted",
    [
        {"user": "jane"},
        {"group": "sta*"},
        {"user_agent": "kubectl/*"},
        {"namespace": "other"},
        {"name": "b*"},
        {"verb": ["get", "list"]},
        {"resource": "secrets"},
        {"resource": "configmaps.apps"},
        {"resource": "configmaps/status"},
        {"skip": 1},
        {"probability": 0.0},
    ],
)
async def test_requests_that_do_not_match_pass(
    environment: Environment, faults: Faults, wanted: dict[str, Any]
) -> None:
    faults.add(code=500, **wanted)
    assert (await environment.client().post(PATH, config_map(next(NAMES)))).status == 201


@pytest.mark.parametrize(
    "wanted",
    [
        {"user": "jane"},
        {"group": ["other", "staff"]},
        {"user_agent": "op*or"},
        {"resource": "configmaps", "namespace": "def*"},
        {"resource": "*"},
        {"resource": "conf*s"},
        {"verb": "create", "name": "x*"},
    ],
)
async def test_requests_that_match_are_hit(environment: Environment, faults: Faults, wanted: dict[str, Any]) -> None:
    faults.add(code=500, **wanted)
    answer = await environment.client("jane").post(PATH, config_map(f"x{next(NAMES)}"), user_agent="operator")
    assert answer.status == 500


async def test_chance_is_the_same_for_a_seed(environment: Environment, faults: Faults) -> None:
    async def codes(seed: int) -> list[int]:
        with faults.add(verb="get", probability=0.5, seed=seed, code=503):
            return [(await environment.client().get(PATH + "/none")).status for _ in range(30)]

    first = await codes(7)
    assert set(first) == {404, 503}
    assert await codes(7) == first != await codes(8)


async def test_the_first_fault_that_hits_happens(environment: Environment, faults: Faults) -> None:
    faults.add(verb="get", code=500, times=1)
    faults.add(verb="get", code=503)
    assert [(await environment.client().get(PATH)).status for _ in range(2)] == [200, 200]  # lists
    assert [(await environment.client().get(PATH + "/x")).status for _ in range(3)] == [500, 503, 503]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({}, "effect: empty"),
        ({"code": 409, "verb": "CREATE"}, "no verb 'CREATE'.*did you mean create?"),
        ({"code": 409, "verb": "post", "resource": "pods"}, "no verb 'post'"),
        ({"code": 409, "resource": "Pod"}, "'Pod' is no name of resources"),
        ({"code": 409, "resource": 5}, "match.resources.*Expected `str`"),
        ({"code": "409"}, "effect.status.code: Expected `int`"),
        ({"code": 409, "times": "1"}, "when.times: Expected `int`"),
        ({"delay": "1s"}, "'1s' is no number of seconds"),
        ({"retry_after": 3}, "need a code"),
        ({"code": 200}, "not between 400 and 599"),
        ({"code": 409, "cut": True}, "only one of"),
        ({"code": 409, "probability": 1.5}, "not between 0 and 1"),
        ({"code": 409, "skip": -1}, "skip and times"),
        ({"delay": 1e9}, "effect.delay.before: not between"),
        ({"delay": -1.0}, "effect.delay.before: not between"),
        ({"code": 409, "name": "a" * 300}, "match.names: a pattern has at most 253"),
        ({"code": 409, "name": ["a"] * 65}, "match.names: more than 64"),
        ({"expire_watch": True}, "needs closeAfter"),
        ({"code": 409, "message": "x" * 2000}, "at most 1024"),
    ],
)
async def test_faults_without_sense_are_refused(faults: Faults, wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFault, match=message):
        faults.add(**wanted)


class Watch:
    """An open watch of ConfigMaps with a label of its own."""

    def __init__(self, environment: Environment, label: str) -> None:
        self._client = environment.client()
        self._label = label
        self._answer: ClientResponse | None = None

    async def __aenter__(self) -> Watch:
        target = f"{PATH}?watch=true&labelSelector=test%3D{self._label}&sendInitialEvents=true"
        self._answer = await self._client.open(
            "GET", f"{target}&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
        )
        self._pieces = aiter(self._answer)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._answer is not None
        await self._answer.aclose()

    async def create(self) -> None:
        labels = {"test": self._label}
        answer = await self._client.post(PATH, {"metadata": {"name": next(NAMES), "labels": labels}})
        assert answer.status == 201

    async def events(self) -> list[str]:
        """Return the types of the next events; none at the end."""
        async with asyncio.timeout(5):
            piece = await anext(self._pieces, b"")
        events = [json.loads(line) for line in piece.splitlines()]
        return [f"ERROR {each['object']['code']}" if each["type"] == "ERROR" else each["type"] for each in events]

    async def is_silent(self, seconds: float = 0.02) -> bool:
        """Return True if no event comes for some time. The watch cannot be read afterwards."""
        try:
            async with asyncio.timeout(seconds):
                await anext(self._pieces, b"")
        except TimeoutError:
            return True
        return False


@pytest.mark.parametrize("expire", [False, True])
async def test_watches_end_after_some_events(environment: Environment, faults: Faults, expire: bool) -> None:
    faults.add(verb="watch", close_watch_after_events=2, expire_watch=expire, times=1)
    async with Watch(environment, f"events-{expire}".lower()) as watch:
        assert await watch.events() == ["BOOKMARK"]
        await watch.create()
        assert await watch.events() == ["ADDED"]
        assert await watch.events() == (["ERROR 410"] if expire else [])
        assert await watch.events() == []


async def test_watches_end_after_some_time(environment: Environment, faults: Faults) -> None:
    faults.add(verb="watch", close_watch_after=0.01)
    async with Watch(environment, "time") as watch:
        assert await watch.events() == ["BOOKMARK"]
        assert await watch.events() == []


async def test_events_come_later(environment: Environment, faults: Faults) -> None:
    faults.add(verb="watch", delay_events=0.02)
    loop = asyncio.get_running_loop()
    async with Watch(environment, "later") as watch:
        assert await watch.events() == ["BOOKMARK"]
        began = loop.time()
        await watch.create()
        await watch.create()
        assert await watch.events() + await watch.events() == ["ADDED", "ADDED"]
        assert loop.time() - began >= 0.02


async def test_events_are_held_back_until_the_fault_ends(environment: Environment, faults: Faults) -> None:
    with faults.add(verb="watch", hold_events=True):
        async with Watch(environment, "held") as watch:
            await watch.create()
            assert await watch.is_silent()
    with faults.add(verb="watch", hold_events=True) as fault:
        async with Watch(environment, "held") as watch:
            await watch.create()
            fault.remove()
            events = [await watch.events() for _ in range(3)]
            assert events == [["ADDED"], ["BOOKMARK"], ["ADDED"]]


async def test_bookmarks_are_left_out_but_for_the_first(environment: Environment, faults: Faults) -> None:
    faults.add(verb="watch", withhold_bookmarks=True)
    async with Watch(environment, "bookmarks") as watch:
        assert await watch.events() == ["BOOKMARK"]


async def test_requests_that_wait_go_on_when_the_fault_ends(environment: Environment, faults: Faults) -> None:
    client, name = environment.client(), next(NAMES)
    delay = faults.add(verb="create", resource="configmaps", delay=3600.0, delay_after=3600.0)
    waiting = asyncio.create_task(client.post(PATH, config_map(name)))

    async def is_hit() -> bool:
        return delay.injected == 1

    await eventually(is_hit)
    assert not waiting.done()
    faults.clear()
    async with asyncio.timeout(30):
        assert (await waiting).status == 201


async def test_faults_end_with_their_time(environment: Environment) -> None:
    from steersman.faults.fault import spec_of
    from steersman.faults.fault_set import FaultSet

    faults = FaultSet()
    fault = faults.add("a", spec_of({"when": {"for": "10ms"}, "effect": {"cut": True}}))
    over = asyncio.Event()
    fault.on_end(over.set)
    assert faults.has_requests
    await asyncio.wait_for(over.wait(), 5)
    assert not faults.has_requests
