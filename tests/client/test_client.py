"""Tests of the client's requests."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from typing import Any

import pytest

from steersman.api.core.v1 import ConfigMap, Namespace
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta, Preconditions
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.errors import is_already_exists, is_conflict, is_not_found
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import CONFIG_MAPS, NAMESPACES
from steersman.endpoints.request import Request as ServedRequest
from steersman.machinery.errors.status import StatusError
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer, Request, Response
from steersman.testing.clock import Clock


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


async def test_an_object_goes_through_all_verbs(client: Client) -> None:
    made = await client.create(CONFIG_MAPS, config_map("one", a="1"))
    assert made.metadata.uid
    assert made.metadata.managed_fields[0].manager == "tests"
    made.data["b"] = "2"
    changed = await client.update(CONFIG_MAPS, made)
    assert (await client.get(CONFIG_MAPS, "one", "default")).data == {"a": "1", "b": "2"}
    patched = await client.patch(CONFIG_MAPS, "one", "default", {"data": {"a": None}})
    assert patched.data == {"b": "2"}
    applied = await client.apply(
        CONFIG_MAPS,
        "one",
        "default",
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "one"}, "data": {"c": "3"}},
    )
    assert applied.data == {"b": "2", "c": "3"}
    with pytest.raises(StatusError) as refused:
        await client.update(CONFIG_MAPS, changed)
    assert is_conflict(refused.value)
    stale = DeleteOptions(preconditions=Preconditions(uid="another"))
    with pytest.raises(StatusError) as refused:
        await client.delete(CONFIG_MAPS, "one", "default", stale)
    assert is_conflict(refused.value)
    await client.delete(CONFIG_MAPS, "one", "default")
    with pytest.raises(StatusError) as refused:
        await client.get(CONFIG_MAPS, "one", "default")
    assert is_not_found(refused.value)


async def test_refusals_have_what_the_server_said(client: Client) -> None:
    with pytest.raises(StatusError) as refused:
        await client.create(CONFIG_MAPS, config_map("Not a name"))
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert [cause.field for cause in refused.value.causes] == ["metadata.name"]
    await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="twice")))
    with pytest.raises(StatusError) as refused:
        await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="twice")))
    assert is_already_exists(refused.value)


async def test_lists_are_read_page_by_page(client: Client) -> None:
    for number in range(7):
        await client.create(CONFIG_MAPS, config_map(f"each-{number}"))
    found = [obj.metadata.name async for obj in client.iterate(CONFIG_MAPS, "default", page=3)]
    assert found == [f"each-{number}" for number in range(7)]


async def test_only_metadata_is_asked_for(client: Client) -> None:
    await client.create(CONFIG_MAPS, config_map("one", a="1"))
    found = await client.list(CONFIG_MAPS.metadata_only, "default")
    assert [obj.metadata.name for obj in found.items] == ["one"]
    assert (await client.get(CONFIG_MAPS.metadata_only, "one", "default")).metadata.uid


async def test_a_watch_tells_of_changes_after_a_version(client: Client) -> None:
    before = await client.list(CONFIG_MAPS, "default")
    await client.create(CONFIG_MAPS, config_map("one"))
    await client.delete(CONFIG_MAPS, "one", "default")
    told = []
    async with client.watch(CONFIG_MAPS, "default", resource_version=before.metadata.resource_version) as batches:
        async for batch in batches:
            told += [(event.type, event.object.metadata.name) for event in batch]
            if len(told) == 2:
                break
    assert told == [("ADDED", "one"), ("DELETED", "one")]


async def test_a_watch_that_cannot_be_raises(client: Client) -> None:
    watching = client.watch(CONFIG_MAPS, resource_version="nothing")
    with pytest.raises(StatusError) as refused:
        await watching.__aenter__()
    assert refused.value.code == 500


async def test_a_server_that_is_overloaded_is_asked_again_when_it_says(caplog: pytest.LogCaptureFixture) -> None:
    asked = []

    async def handler(request: Request) -> Response:
        asked.append(asyncio.get_running_loop().time())
        if len(asked) < 3:
            return Response(429, [("retry-after", "7")], b"too many")
        return Response(200, [], b'{"metadata":{"name":"one"}}')

    clock = Clock()
    client = Client(InProcessTransport(handler, ""), "tests")
    wanted = asyncio.create_task(client.get(CONFIG_MAPS, "one", "default"))
    await clock.advance(seconds=15)
    assert (await wanted).metadata.name == "one"
    assert [round(each - asked[0]) for each in asked] == [0, 7, 14]
    assert caplog.messages == ["the server answers 429 and asks to wait: the next attempt is in 7 s"] * 2


async def test_a_server_that_stays_overloaded_is_asked_ten_times(caplog: pytest.LogCaptureFixture) -> None:
    asked = 0

    async def handler(request: Request) -> Response:
        nonlocal asked
        asked += 1
        return Response(503, [("retry-after", "1")], b"not now")

    clock = Clock()
    client = Client(InProcessTransport(handler, ""), "tests")
    wanted = asyncio.create_task(client.get(CONFIG_MAPS, "one", "default"))
    await clock.advance(seconds=20)
    with pytest.raises(StatusError) as refused:
        await wanted
    assert (refused.value.code, refused.value.retry_after, asked) == (503, 1, 10)
    assert caplog.messages == []  # short pauses are not worth a line


async def test_a_refusal_that_names_no_time_is_told_at_once() -> None:
    asked = 0

    async def handler(request: Request) -> Response:
        nonlocal asked
        asked += 1
        return Response(429, [], b"no more evictions")

    with pytest.raises(StatusError):
        await Client(InProcessTransport(handler, ""), "tests").get(CONFIG_MAPS, "one", "default")
    assert asked == 1


async def test_only_so_many_requests_wait_at_the_same_time() -> None:
    waiting, most = 0, 0
    many = asyncio.Event()

    async def handler(request: Request) -> Response:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        if waiting == 64:
            many.set()
        await many.wait()
        await asyncio.sleep(0.01)  # in which more would come
        waiting -= 1
        return Response(200, [], b"{}")

    client = Client(InProcessTransport(handler, ""), "tests")
    await asyncio.gather(*(client.get(CONFIG_MAPS, "one", "default") for _ in range(300)))
    assert most == 64


@pytest.mark.parametrize("name", ["there", "nowhere"])
async def test_requests_in_this_process_leave_nothing_to_the_collector(client: Client, name: str) -> None:
    """Exchanges leave no reference cycles: collecting thousands of them would hold the event loop for 0.1 s."""
    await client.create(CONFIG_MAPS, config_map("there"))

    async def ask() -> None:
        with suppress(StatusError):
            await client.get(CONFIG_MAPS, name, "default")

    async def left_by(requests: int) -> int:
        gc.collect()
        for _ in range(requests):
            await ask()
        return gc.collect()

    await ask()
    gc.disable()
    try:
        # tasks of the server leave something now and then, requests would do so every time
        assert min([await left_by(50) for _ in range(3)]) < 50
    finally:
        gc.enable()


async def test_a_watch_that_has_ended_leaves_nothing_of_its_request(client: Client) -> None:
    """A request refers to the whole server. A reference to it in a finished watch once kept the server alive."""

    def requests() -> int:
        gc.collect()
        return sum(isinstance(each, ServedRequest) for each in gc.get_objects())

    await client.create(CONFIG_MAPS, config_map("there"))
    before = requests()
    for _ in range(3):
        async with client.watch(CONFIG_MAPS, "default", initial_events=True) as batches:
            assert await anext(batches)
    assert requests() == before
    kept = ServedRequest(Request("GET", "/", "", Headers(), EMPTY_BODY, Peer()))
    assert requests() == before + 1, kept


@pytest.mark.parametrize("name", ["a/b", "..", ".", "a%2Fb", "x/../../y"])
async def test_names_that_are_other_paths_are_not_asked_for(name: str) -> None:
    """Names in references are not validated: a user who writes one must not choose a controller's request path."""
    asked: list[str] = []

    async def handler(request: Request) -> Response:
        asked.append(request.path)
        return Response(200, [], b"{}")

    client = Client(InProcessTransport(handler, "t"), "t")
    asked_for: tuple[tuple[APIResource[Any], str, str], ...] = (
        (CONFIG_MAPS, name, "n"),
        (CONFIG_MAPS, "n", name),
        (NAMESPACES, name, ""),
    )
    for resource, its_name, namespace in asked_for:
        with pytest.raises(StatusError, match=r"invalid (resource name|namespace)") as refused:
            await client.get(resource, its_name, namespace)
        assert refused.value.reason == "BadRequest"
    assert asked == []
