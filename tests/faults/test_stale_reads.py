"""Reads that are answered from an older state, within the bounds of what the API allows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from steersman.faults.fault import InvalidFault
from steersman.faults.shown_revisions import MOST_SHOWN, ShownRevisions
from steersman.faults.stale_reads import Timeline
from steersman.net.message import Peer
from steersman.testing import Client, Environment
from steersman.testing.faults import Faults
from tests.controllers.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/api/v1/namespaces/{}/configmaps"
NAMESPACES = (f"stale-{number}" for number in count())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment() -> AsyncIterator[Environment]:
    async with Environment() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def path(environment: Environment) -> str:
    """Return the path of ConfigMaps in a new namespace, without faults."""
    environment.faults.clear()
    name = next(NAMESPACES)
    await environment.client().post("/api/v1/namespaces", {"metadata": {"name": name}})
    return PATH.format(name)


@pytest.fixture
def faults(environment: Environment) -> Faults:
    return environment.faults


async def write(environment: Environment, path: str, *values: str, name: str = "a") -> int:
    """Write values of a ConfigMap one after the other, and return the last revision."""
    client = environment.client()
    for value in values:
        body = {"metadata": {"name": name}, "data": {"v": value}}
        answer = await client.put(f"{path}/{name}", body)
        if answer.status == 404:
            answer = await client.post(path, body)
        assert answer.status in (200, 201), answer.body
    return int(answer.json()["metadata"]["resourceVersion"])


async def value(client: Client, path: str, query: str = "?resourceVersion=0", name: str = "a") -> str:
    answer = await client.get(f"{path}/{name}{query}")
    return str(answer.json()["data"]["v"] if answer.status == 200 else answer.status)


async def values(client: Client, path: str, query: str = "?resourceVersion=0") -> dict[str, str]:
    answer = await client.get(f"{path}{query}")
    return {each["metadata"]["name"]: each["data"]["v"] for each in answer.json()["items"]}


async def test_a_new_connection_reads_some_revisions_behind(
    environment: Environment, path: str, faults: Faults
) -> None:
    await write(environment, path, "1", "2", "3")
    with faults.add(resource="configmaps", stale_by=2, even_behind_shown=True) as fault:
        client = environment.client()
        assert (await value(client, path), await values(client, path)) == ("1", {"a": "1"})
        assert (await value(client, path, ""), await values(client, path, "")) == ("3", {"a": "3"}), "consistent"
        assert fault.injected == 2
    assert await value(environment.client(), path) == "3"


async def test_the_past_has_deleted_objects_and_lacks_new_ones(
    environment: Environment, path: str, faults: Faults
) -> None:
    await write(environment, path, "1", name="old")
    with faults.add(resource="configmaps", stale_hold=True):
        await environment.client().delete(f"{path}/old")
        await write(environment, path, "1", name="new")
        client = environment.client()
        assert await values(client, path) == {"old": "1"}
        assert [await value(client, path, name=name) for name in ("old", "new")] == ["1", "404"]
        answer = (await client.get(f"{path}?resourceVersion=0&limit=1")).json()
        assert [each["metadata"]["name"] for each in answer["items"]] == ["old"]
        selected = await values(client, path, "?resourceVersion=0&fieldSelector=metadata.name%3Dold")
        assert selected == {"old": "1"}


async def test_a_connection_never_goes_back(environment: Environment, path: str, faults: Faults) -> None:
    await write(environment, path, "1")
    before = environment.client()
    with faults.add(resource="configmaps", stale_hold=True):
        await write(environment, path, "2")
        client = environment.client()
        assert await value(client, path) == "1"
        assert await value(client, path, "") == "2"
        assert await value(client, path) == "2", "it was shown 2"
        assert await value(environment.client(), path) == "1"
        assert await value(before, path) == "1", "it may have been shown 1, not 2"
    with faults.add(resource="configmaps", stale_by=3):
        assert await value(before, path) == "2", "it was there before, and may have been shown 2"
    with faults.add(resource="configmaps", stale_hold=True, even_behind_shown=True):
        await write(environment, path, "3")
        assert await value(before, path, "") == "3"
        assert await value(before, path) == "2"


async def test_a_writer_reads_at_least_its_own_write(environment: Environment, path: str, faults: Faults) -> None:
    await write(environment, path, "1")
    with faults.add(resource="configmaps", stale_hold=True):
        client = environment.client()
        answer = await client.put(f"{path}/a", {"metadata": {"name": "a"}, "data": {"v": "2"}})
        assert answer.status == 200
        assert await value(client, path) == "2"


async def test_a_requested_revision_is_reached(environment: Environment, path: str, faults: Faults) -> None:
    await write(environment, path, "1")
    with faults.add(resource="configmaps", stale_hold=True) as fault:
        revision = await write(environment, path, "2")
        await write(environment, path, "3")
        client = environment.client()
        assert await value(client, path, f"?resourceVersion={revision}") == "2"
        exact = f"?resourceVersion={revision}&resourceVersionMatch=Exact"
        assert await values(environment.client(), path, exact) == {"a": "2"}
        assert fault.matched == 1, "an exact list has only one answer"
        assert (await client.get(f"{path}?resourceVersion=x")).status == 400


async def test_consistent_reads_are_stale_only_on_request(environment: Environment, path: str, faults: Faults) -> None:
    await write(environment, path, "1")
    with faults.add(resource="configmaps", stale_hold=True, even_consistent=True):
        await write(environment, path, "2")
        assert await values(environment.client(), path, "") == {"a": "1"}


async def test_a_watch_shows_its_connection_what_comes(environment: Environment, path: str, faults: Faults) -> None:
    await write(environment, path, "1")
    with faults.add(resource="configmaps", stale_hold=True):
        client = environment.client()
        watch = await client.open("GET", f"{path}?watch=1&resourceVersion=0")
        event = json.loads(await anext(aiter(watch)))
        assert event["object"]["data"] == {"v": "1"}
        await write(environment, path, "2")
        assert await value(client, path) == "2"
        await watch.aclose()
        await write(environment, path, "3")
        assert await value(client, path) == "2"
        assert await value(environment.client(), path) == "1"


async def test_the_state_is_as_old_as_a_time(environment: Environment, path: str, faults: Faults) -> None:
    await write(environment, path, "1")
    with faults.add(resource="configmaps", stale_for=0.3):
        await write(environment, path, "2")
        assert await value(environment.client(), path) == "1"

        async def has_caught_up() -> bool:
            return await value(environment.client(), path) == "2"

        await eventually(has_caught_up)


async def test_the_past_ends_where_it_is_compacted(environment: Environment, path: str, faults: Faults) -> None:
    await write(environment, path, "1", "2", "3")
    storage = environment.plane.storage
    assert storage is not None
    await storage.compact(storage.revision - 1)
    with faults.add(resource="configmaps", stale_by=1000, even_behind_shown=True):
        assert await value(environment.client(), path) == "2"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"even_consistent": True}, "needs one of by, for and hold"),
        ({"stale_by": 1, "stale_for": 1}, "needs one of by, for and hold"),
        ({"stale_by": -1}, "effect.stale.by: not between"),
        ({"stale_by": 1, "webhook": "a"}, "effect.stale: is for requests"),
    ],
)
async def test_unclear_ages_are_refused(faults: Faults, wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFault, match=message):
        faults.add(**wanted)


async def test_many_connections_are_not_remembered_one_by_one() -> None:
    shown, resource = ShownRevisions(5), ("", "pods")
    peers = [Peer(port=number, since=float("inf")) for number in range(MOST_SHOWN + 1)]
    for number, peer in enumerate(peers):
        shown.note(peer, resource, 10 + number)
    early = Peer(since=0.0)
    assert shown.floor(early, resource, 10**6) == 10 + MOST_SHOWN, "it counts as one that was forgotten"
    assert shown.floor(peers[-1], resource, 10**6) == 10 + MOST_SHOWN


async def test_a_timeline_knows_little_of_much() -> None:
    timeline = Timeline(3600)
    for revision in range(1, 10_000):
        timeline.note(revision)
    assert timeline.then() == 1
