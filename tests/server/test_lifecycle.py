"""Graceful shutdown: readyz fails first, running requests finish, watches end, storage closes last."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from threading import Thread, current_thread

import pytest
from msgspec.structs import replace

from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options, OptionsError
from steersman.server.server import Server
from steersman.storage.interface import StorageFormatError, StorageLocked
from steersman.testing import Client
from steersman.work.offloading import offload_if

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BODY = json.dumps({"metadata": {"name": "late"}}).encode()


def server_of(plane: ControlPlane) -> Server:
    assert plane.server is not None
    return plane.server


class Gate:
    """A shutdown hook that blocks the shutdown until the test releases it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        server_of(plane).add_pre_shutdown_hook("gate", self._wait)

    async def _wait(self) -> None:
        self.reached.set()
        await self.opened.wait()


class HeldBody:
    """A request body in two parts; the test releases the second."""

    def __init__(self, data: bytes = BODY) -> None:
        self._data = data
        self.begun = asyncio.Event()
        self.released = asyncio.Event()

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self._data[:5]
        self.begun.set()
        await self.released.wait()
        yield self._data[5:]


async def test_a_started_server_is_ready_on_all_three_paths(api: Client) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        answer = await api.get(path)
        assert (answer.status, answer.body) == (200, b"ok")


async def test_readyz_fails_as_soon_as_the_end_begins_while_requests_are_still_served(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    plane = await start_control_plane()
    gate, client = Gate(plane), client_of(plane)
    stopping = asyncio.create_task(plane.stop())
    await gate.reached.wait()
    ready = await client.get("/readyz")
    assert ready.status == 500
    assert b"[-]shutdown failed: reason withheld\n" in ready.body
    assert (await client.get("/livez")).status == 200
    assert (await client.get(CONFIGMAPS)).status == 200
    gate.opened.set()
    await stopping


async def test_no_new_watch_begins_once_the_end_has_begun(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    plane = await start_control_plane()
    gate, client = Gate(plane), client_of(plane)
    stopping = asyncio.create_task(plane.stop())
    await gate.reached.wait()
    answer = await client.get(f"{CONFIGMAPS}?watch=1")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    gate.opened.set()
    await stopping


async def test_watches_end_properly_and_have_seen_everything_written_before(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    plane = await start_control_plane()
    client = client_of(plane)
    watch = await client.open("GET", f"{CONFIGMAPS}?watch=1&resourceVersion=0&fieldSelector=metadata.name=last")
    await client.post(CONFIGMAPS, {"metadata": {"name": "last"}})
    _, body = await asyncio.gather(plane.stop(), watch.read())
    event = json.loads(body)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "last")


async def test_a_request_that_runs_is_finished_and_new_ones_are_refused_meanwhile(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    plane = await start_control_plane()
    client, body = client_of(plane), HeldBody()
    late = asyncio.create_task(client.raw("POST", CONFIGMAPS, body.pieces(), content_type="application/json"))
    await body.begun.wait()
    stopping = asyncio.create_task(plane.stop())
    while not server_of(plane).lifecycle.not_accepting:  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(0)
    refused = await client.get(CONFIGMAPS)
    assert refused.status == 503
    assert "shutting down" in refused.json()["message"]
    assert plane.storage is not None
    assert not stopping.done()
    body.released.set()
    assert (await late).status == 201
    await stopping
    assert plane.storage is None


async def test_clients_are_sent_elsewhere_where_that_is_asked_for(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client]
) -> None:
    plane = await start_control_plane(shutdown_send_retry_after=True)
    client, body = client_of(plane), HeldBody()
    late = asyncio.create_task(client.raw("POST", CONFIGMAPS, body.pieces(), content_type="application/json"))
    await body.begun.wait()
    stopping = asyncio.create_task(plane.stop())
    while not server_of(plane).lifecycle.not_accepting:  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(0)
    refused = await client.get(CONFIGMAPS)
    assert (refused.status, refused.headers["retry-after"]) == (429, "5")
    body.released.set()
    assert (await late).status == 201
    await stopping


async def test_requests_and_connections_have_one_time_to_end_in(
    start_control_plane: Callable[..., Awaitable[ControlPlane]],
    client_of: Callable[..., Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plane = await start_control_plane()
    client, body, given = client_of(plane), HeldBody(), []

    class Listener:
        def begin_drain(self) -> None:
            pass

        async def drain(self, timeout: float) -> None:
            given.append(timeout)

    server = server_of(plane)
    monkeypatch.setattr(server, "config", replace(server.config, shutdown_timeout=0.05))
    monkeypatch.setattr(server, "_http", Listener())
    late = asyncio.create_task(client.raw("POST", CONFIGMAPS, body.pieces(), content_type="application/json"))
    await body.begun.wait()
    await plane.stop()
    assert given == [1.0]
    late.cancel()


async def test_stopping_twice_does_nothing_more(start_control_plane: Callable[..., Awaitable[ControlPlane]]) -> None:
    plane = await start_control_plane()
    await plane.stop()
    await plane.stop()


async def test_the_end_works_in_the_threads_of_the_server(
    start_control_plane: Callable[..., Awaitable[ControlPlane]],
) -> None:
    of_process = await offload_if(True, current_thread)
    plane = await start_control_plane()
    used: list[Thread] = []

    async def hook() -> None:
        used.append(await offload_if(True, current_thread))

    server_of(plane).add_pre_shutdown_hook("threads", hook)
    await plane.stop()
    assert used
    assert of_process not in used
    used[0].join(1)
    assert not used[0].is_alive()


async def test_what_was_acknowledged_is_there_after_an_orderly_end(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client], tmp_path: Path
) -> None:
    plane = await start_control_plane(data_dir=tmp_path, storage="sqlite")
    created = (await client_of(plane).post(CONFIGMAPS, {"metadata": {"name": "kept"}, "data": {"a": "b"}})).json()
    await plane.stop()
    again = await start_control_plane(data_dir=tmp_path, storage="sqlite")
    assert (await client_of(again).get(f"{CONFIGMAPS}/kept")).json() == created


async def test_a_second_server_on_the_same_folder_is_refused_and_the_first_goes_on(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client], tmp_path: Path
) -> None:
    first = await start_control_plane(data_dir=tmp_path, storage="sqlite")
    with pytest.raises(StorageLocked, match="in use by another process"):
        await start_control_plane(data_dir=tmp_path, storage="sqlite")
    assert (await client_of(first).post(CONFIGMAPS, {"metadata": {"name": "more"}})).status == 201


async def test_a_start_that_fails_leaves_nothing_behind(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = {"data_dir": tmp_path, "storage": "sqlite", "bind_address": "127.0.0.1", "secure_port": port}
        with pytest.raises(OptionsError, match="in use"):
            await start_control_plane(listen=True, **options)
    again = await start_control_plane(listen=True, **options)
    assert again.storage is not None


async def test_a_file_that_is_not_ours_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "steersman.db"
    file.write_bytes(b"something else entirely" * 100)
    before = file.read_bytes()
    with pytest.raises(StorageFormatError, match="not a SQLite file"):
        await ControlPlane(Options(data_dir=tmp_path, listen=False)).start()
    assert file.read_bytes() == before
