"""Tests of informers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
import pytest_asyncio

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.client import client as client_module
from steersman.client.client import Client
from steersman.client.informer import Informer, Informers
from steersman.client.resources import CONFIG_MAPS
from steersman.client.transport import Fields, Response, Transport
from steersman.machinery.errors.status import StatusError


def config_map(name: str, **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default", labels=labels))


async def wait_until(told: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not told():  # noqa: ASYNC110 - nothing else tells of it
            await asyncio.sleep(0.001)


@pytest_asyncio.fixture
async def informer(client: Client) -> AsyncIterator[Informer[ConfigMap]]:
    await client.create(CONFIG_MAPS, config_map("before", app="a"))
    informer = Informer(client, CONFIG_MAPS)
    informer.start()
    yield informer
    await informer.stop()


async def test_it_has_what_was_there_and_what_comes(client: Client, informer: Informer[ConfigMap]) -> None:
    changes: list[tuple[str, str]] = []
    informer.on_change(
        lambda old, new: changes.append((old.metadata.name if old else "", new.metadata.name if new else ""))
    )
    informer.add_index("app", lambda obj: [obj.metadata.labels.get("app", "")])
    await informer.wait_until_synced()
    assert informer.get("default", "before") is not None
    await client.create(CONFIG_MAPS, config_map("after", app="a"))
    await client.patch(CONFIG_MAPS, "before", "default", {"metadata": {"labels": {"app": "b"}}})
    await client.delete(CONFIG_MAPS, "after", "default")
    ours = [("", "before"), ("", "after"), ("before", "before"), ("after", "")]
    await wait_until(lambda: [each for each in changes if set(each) <= {"", "before", "after"}] == ours)
    assert [obj.metadata.name for obj in informer.indexed("app", "b")] == ["before"]
    assert informer.indexed("app", "a") == []
    assert informer.get("default", "after") is None
    found = informer.get("default", "before")
    assert found is not None
    assert found.metadata.managed_fields == []


async def test_large_objects_are_read_beside_the_loop_and_in_their_order(
    client: Client, informer: Informer[ConfigMap], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, on_loop, told = client_module.decode_events, dict[str, bool](), list[str]()

    def noted(resource: Any, lines: Sequence[bytes]) -> Any:
        events = read(resource, lines)
        for each in events:
            on_loop[each.object.metadata.name] = threading.current_thread() is threading.main_thread()
        return events

    monkeypatch.setattr(client_module, "decode_events", noted)
    await informer.wait_until_synced()
    informer.on_change(lambda _, new: told.append(new.metadata.name if new else ""))
    told.clear()
    for name, size in (("large", 2_000), ("small", 1), ("larger", 20_000)):
        made = config_map(name)
        made.data = {f"k{number}": "v" for number in range(size)}
        await client.create(CONFIG_MAPS, made)
    await wait_until(lambda: "larger" in told)
    assert told == ["large", "small", "larger"]
    assert (on_loop["large"], on_loop["larger"]) == (False, False)


async def test_a_handler_that_comes_late_is_told_of_what_is_there(informer: Informer[ConfigMap]) -> None:
    await informer.wait_until_synced()
    notified: list[str] = []
    informer.on_change(lambda _, new: notified.append(new.metadata.name if new else ""))
    assert "before" in notified


class CutWatches:
    """A transport that cuts watches after their first events, and once answers that the resourceVersion has expired."""

    def __init__(self, through: Transport) -> None:
        self._through = through
        self.watches = 0
        self.running: list[Response] = []

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> Response:
        if "watch=1" in target:
            self.watches += 1
            if self.watches == 2:
                target = target.replace("resourceVersion=", "resourceVersion=1&was=")
        response = await self._through.send(method, target, fields, body)
        if "watch=1" in target:
            self.running.append(response)
        return response

    async def aclose(self) -> None:
        await self._through.aclose()


async def test_what_changed_while_nobody_watched_is_told_of(client: Client) -> None:
    cutting = CutWatches(client._transport)
    await client.create(CONFIG_MAPS, config_map("goes"))
    await client.create(CONFIG_MAPS, config_map("comes-again"))
    informer = Informer(Client(cutting, "tests"), CONFIG_MAPS)
    gone: list[str] = []
    informer.on_change(lambda old, new: gone.append(old.metadata.name) if old and not new else None)
    informer.start()
    await informer.wait_until_synced()
    await client.delete(CONFIG_MAPS, "goes", "default")
    await client.delete(CONFIG_MAPS, "comes-again", "default")
    await client.create(CONFIG_MAPS, config_map("comes-again", now="new"))
    await client.create(CONFIG_MAPS, config_map("came"))
    await cutting.running[0].aclose()
    await wait_until(lambda: informer.get("default", "came") is not None)
    assert informer.get("default", "goes") is None
    assert sorted(gone) == ["comes-again", "goes"]
    again = informer.get("default", "comes-again")
    assert again is not None
    assert again.metadata.labels == {"now": "new"}
    await informer.stop()


class ExpiredResponse:
    """The error response to a request with an expired resourceVersion."""

    status = 410

    def header(self, name: str) -> str:
        return ""

    async def read(self) -> bytes:
        return b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}'

    async def pieces(self) -> AsyncIterator[bytes]:
        yield await self.read()

    async def aclose(self) -> None:
        pass


class ExpiringServer:
    """A transport to a server on which every watch is expired."""

    def __init__(self) -> None:
        self.watches = 0

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> Response:
        self.watches += 1
        await asyncio.sleep(0)
        return ExpiredResponse()

    async def aclose(self) -> None:
        pass


async def test_a_server_to_which_every_watch_is_too_old_is_not_asked_all_the_time() -> None:
    transport = ExpiringServer()
    informer = Informer(Client(transport, "tests"), CONFIG_MAPS)
    informer.start()
    for _ in range(200):
        await asyncio.sleep(0)
    assert transport.watches == 1
    await informer.stop()


class OldServer:
    """A transport to a server before 1.32: without initial events, and with unknown members in objects."""

    def __init__(self, through: Transport) -> None:
        self._through = through
        self.targets: list[str] = []

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> Response:
        self.targets.append(target)
        return (
            RefusedResponse()
            if "sendInitialEvents" in target
            else await self._through.send(method, target, fields, body)
        )

    async def aclose(self) -> None:
        await self._through.aclose()


class RefusedResponse(ExpiredResponse):
    """The error response to an unknown option."""

    status = 422

    async def read(self) -> bytes:
        return b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}'


async def test_a_server_without_initial_events_is_asked_for_lists(client: Client) -> None:
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, config_map(name, app="x"))
    old = OldServer(client._transport)
    informer = Informer(Client(old, "tests"), CONFIG_MAPS, namespace="default", label_selector="app=x")
    informer.start()
    await informer.wait_for_first_attempt()
    assert sorted(each.metadata.name for each in informer) == ["a", "b"]
    await client.create(CONFIG_MAPS, config_map("c", app="x"))
    await wait_until(lambda: informer.get("default", "c") is not None)
    await informer.stop()
    assert [each.partition("?")[0] for each in old.targets] == ["/api/v1/namespaces/default/configmaps"] * 3
    assert ["watch" in each for each in old.targets] == [True, False, True]


async def test_the_first_attempt_tells_why_nothing_can_be_followed() -> None:
    informer = Informer(Client(ExpiringServer(), "tests"), CONFIG_MAPS)
    informer.start()
    with pytest.raises(StatusError) as refused:
        await informer.wait_for_first_attempt()
    assert refused.value.code == 410
    await informer.stop()


async def test_all_who_wait_for_the_first_attempt_are_told(client: Client) -> None:
    for server, expected in ((client, None), (Client(ExpiringServer(), "tests"), StatusError)):
        informer = Informer(server, CONFIG_MAPS)
        waiting = [asyncio.create_task(informer.wait_for_first_attempt()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting.pop().cancel()
        informer.start()
        async with asyncio.timeout(10):
            results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in results] == [expected or type(None)] * 2
        await informer.stop()


async def test_more_than_there_is_room_for_is_not_kept(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(40):
        await client.create(CONFIG_MAPS, config_map(f"large-{number}", label="x" * 60))
    informer = Informer(client, CONFIG_MAPS, most_bytes=10_000)
    here = 0
    most = 0

    def changed(old: ConfigMap | None, new: ConfigMap | None) -> None:
        nonlocal here, most
        here += (new is not None) - (old is not None)
        most = max(most, here)

    informer.on_change(changed)
    informer.start()
    await wait_until(lambda: "configmaps cannot be followed" in caplog.text and not here)
    assert 0 < most < 40
    assert not informer.has_synced
    assert not len(informer)
    # once there is less, it follows
    for number in range(1, 40):
        await client.delete(CONFIG_MAPS, f"large-{number}", "default")
    await informer.wait_until_synced()
    assert informer.get("default", "large-0") is not None
    await informer.stop()


async def test_all_who_ask_share_one(client: Client) -> None:
    informers = Informers(client)
    assert informers.for_resource(CONFIG_MAPS) is informers.for_resource(CONFIG_MAPS)
    of_metadata: Informer[Any] = informers.for_resource(CONFIG_MAPS.metadata_only)
    assert of_metadata is not informers.for_resource(CONFIG_MAPS)
    assert informers.for_resource(CONFIG_MAPS, field_selector="metadata.name=a") is not informers.for_resource(
        CONFIG_MAPS
    )
    informers.start()
    await informers.wait_until_synced()
    assert informers.for_resource(CONFIG_MAPS).has_synced
    await informers.stop()


class _JSONResponse:
    def __init__(self, status: int, text: str) -> None:
        self.status = status
        self._body = text.encode()

    def header(self, name: str) -> str:
        return ""

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body

    async def aclose(self) -> None:
        """Do nothing."""


class RepeatingServer:
    """A transport to a server without lists by watches, whose lists have a page that leads to itself."""

    def __init__(self) -> None:
        self.lists = 0

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> Response:
        if "watch=1" in target:
            return _JSONResponse(422, '{"kind":"Status","reason":"Invalid","message":"forbidden","code":422}')
        self.lists += 1
        return _JSONResponse(200, '{"metadata":{"continue":"again"},"items":[]}')

    async def aclose(self) -> None:
        """Do nothing."""


async def test_a_list_without_end_fails_at_the_first_repeated_page() -> None:
    server = RepeatingServer()
    client = Client(server, "tests")
    informer = Informer(client, CONFIG_MAPS)
    waiting = asyncio.create_task(informer.wait_for_first_attempt())
    await asyncio.sleep(0)
    informer.start()
    with pytest.raises(StatusError, match="a page of configmaps is followed by itself"):
        await waiting
    await informer.stop()
    assert server.lists == 2
    with pytest.raises(StatusError, match="a page of configmaps is followed by itself"):
        _ = [each async for each in client.iterate(CONFIG_MAPS)]
    assert server.lists == 4
