"""Calls of members that are away, hang up, or say nothing any more."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from steersman.net.client.grpc import CallError, Code
from steersman.storage.etcd import EtcdStorage, members, messages
from steersman.storage.etcd.members import Endpoint, Members, endpoints
from steersman.storage.interface import StorageUnavailable
from steersman.tracing.readers import Readers
from steersman.tracing.trace import record, stop_recording
from tests.storage.etcd.process import EtcdProcess
from tests.storage.storage_model import Recorder

ASKED = messages.range_of(b"/a")


class Hangs:
    """A listener that accepts connections and sends nothing, or closes them immediately."""

    def __init__(self, *, up: bool) -> None:
        self._up = up
        self.taken = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Hangs:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.gather(*self._tasks)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        if self._up:
            writer.transport.abort()
            return
        with contextlib.suppress(OSError):
            await reader.read(-1)
        writer.transport.abort()


async def ended(found: Members) -> None:
    """Closes them; transports let go of their sockets in the next turn of the loop."""
    found.close()
    await asyncio.sleep(0.01)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "QUIET", 0.1)
    monkeypatch.setattr(members, "SILENT", 0.1)


@pytest.fixture
async def hanging_up() -> AsyncIterator[Hangs]:
    async with Hangs(up=True) as hangs:
        yield hangs


async def test_one_who_hangs_up_at_once_is_told_of_as_unavailable(hanging_up: Hangs) -> None:
    members = Members(endpoints([hanging_up.url]))
    try:
        for _ in range(20):  # the connection ends while it is made, or just after that
            with pytest.raises(CallError) as caught:
                await members.call(messages.RANGE, ASKED, repeatable=False)
            assert caught.value.code is Code.UNAVAILABLE
    finally:
        await ended(members)


async def test_a_connection_that_ends_before_it_is_taken_over_was_not_used(
    hanging_up: Hangs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: object, **__: object) -> None:
        raise ConnectionResetError("the connection is closed")

    monkeypatch.setattr(members, "Http2Connection", too_late)
    found = Members(endpoints([hanging_up.url]))
    with pytest.raises(CallError) as caught:
        await found.call(messages.TXN, ASKED, repeatable=False)
    assert caught.value.is_unsent
    await ended(found)


@pytest.mark.usefixtures("impatient")
async def test_a_member_that_owes_answers_and_is_silent_is_left(etcd_process: EtcdProcess) -> None:
    async with Hangs(up=False) as silent:
        members = Members(endpoints([silent.url, etcd_process.url]))
        members.endpoints.sort(key=lambda each: each.text != silent.url)
        began = time.monotonic()
        assert messages.read_range(await members.call(messages.RANGE, ASKED, repeatable=True)).revision == 1
        assert time.monotonic() - began < 5
        assert silent.taken == 1
        await ended(members)


@pytest.mark.usefixtures("impatient")
async def test_a_write_to_a_member_that_stops_is_not_sent_again(etcd_process: EtcdProcess) -> None:
    members = Members(endpoints([etcd_process.url]))
    await members.call(messages.RANGE, ASKED, repeatable=True)
    etcd_process.pause()
    with pytest.raises(CallError) as caught:
        await members.call(messages.TXN, ASKED, repeatable=False)
    assert caught.value.code is Code.UNAVAILABLE
    assert not caught.value.is_unsent
    await ended(members)


async def test_a_member_of_another_cluster_is_asked_for_nothing(tmp_path: Path, etcd_process: EtcdProcess) -> None:
    foreign = EtcdProcess(tmp_path / "foreign", "--initial-cluster-token", "another")
    await asyncio.to_thread(foreign.start)
    store = await EtcdStorage.open([etcd_process.url], root="", compaction_interval=0)
    for each in (store.members, store.watched):
        each.endpoints = endpoints([etcd_process.url, foreign.url])
        each.at = 0
    try:
        await store.create("/a", b"1")
        etcd_process.kill()
        for _ in range(3):
            with pytest.raises(StorageUnavailable):
                await store.create("/b", b"1")
        with pytest.raises(StorageUnavailable, match=r"is a member of another cluster|Error while dialing"):
            await store.get("/a")
        await asyncio.to_thread(etcd_process.start)
        await store.create("/c", b"1")
    finally:
        await store.close()
        foreign.stop()
    alone = await EtcdStorage.open([etcd_process.url], root="", compaction_interval=0)
    assert [each.key for each in (await alone.range("/")).items] == ["/a", "/c"]
    await alone.close()


@pytest.mark.usefixtures("impatient")
async def test_a_member_that_is_there_is_kept_however_long_it_takes(etcd_process: EtcdProcess) -> None:
    members = Members(endpoints([etcd_process.url]))
    told: list[CallError | None] = []
    stream = await members.stream(messages.WATCH, lambda data: None, told.append)
    stream.send(messages.watch(b"/", b"0", 1))
    connection = members.connection
    await asyncio.sleep(1)  # in which nothing happens
    assert members.connection is connection
    assert not told
    stream.cancel()
    await ended(members)


@pytest.mark.parametrize("others", [1, 3])
async def test_the_watch_finds_the_member_that_answers(etcd_process: EtcdProcess, others: int) -> None:
    """Whatever the number of those that do not: with one other it once came back to that each time."""
    dead = [f"http://127.0.0.1:{port}" for port in range(1, others + 1)]
    store = await EtcdStorage.open([etcd_process.url], root="", compaction_interval=0)
    await store.create("/before", b"1")  # so the watch is there
    store.watched.endpoints = endpoints([*dead, etcd_process.url])
    store.watched.dial_seconds = 1.0
    store.watched.at = others  # the next one is the first of the dead
    assert store.watched.connection is not None
    store.watched.connection.close()
    try:
        recorder = Recorder()
        await store.subscribe("", after_revision=1, deliver=recorder)
        async with asyncio.timeout(15):
            await store.create("/a", b"1")
        assert recorder.revisions == [2, 3]
    finally:
        await store.close()


async def test_many_calls_that_are_given_up_leave_the_connection_as_it_is(etcd_process: EtcdProcess) -> None:
    """etcd hangs up on clients that send PING often while it has nothing to say."""
    members = Members(endpoints([etcd_process.url]))
    await members.call(messages.RANGE, ASKED, repeatable=True)
    connection = members.connection
    assert connection is not None
    for _ in range(8):
        stream = await members.stream(messages.WATCH, lambda data: None, lambda error: None)
        await asyncio.sleep(0.02)
        stream.cancel()
        await asyncio.sleep(0.02)
    await members.call(messages.RANGE, ASKED, repeatable=True)
    assert members.connection is connection
    await ended(members)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
async def test_a_watch_on_a_member_that_stops_goes_on_elsewhere(tmp_path: Path) -> None:
    process = EtcdProcess(tmp_path / "etcd")
    await asyncio.to_thread(process.start)
    store = await EtcdStorage.open([process.url], root="", compaction_interval=0)
    recorder = Recorder()
    try:
        await store.subscribe("", after_revision=1, deliver=recorder)
        await store.create("/a", b"1")
        process.pause()
        async with asyncio.timeout(10):
            while not store.watch_loop.trouble:  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(0.02)
        process.go_on()
        async with asyncio.timeout(10):
            await store.create("/b", b"1")
        assert recorder.revisions == [2, 3]
    finally:
        process.go_on()
        await store.close()
        process.stop()


def test_a_password_in_a_url_is_not_shown() -> None:
    assert Endpoint("https://user:secret@member:2379").text == "https://member:2379"
    assert Endpoint("member").text == "member"


async def test_a_call_of_a_traced_request_passes_its_trace_context_on() -> None:
    grpc = pytest.importorskip("grpc")
    received: list[dict[str, str]] = []

    def answer(_: bytes, context: Any) -> bytes:
        received.append(dict(context.invocation_metadata()))
        return b"\x0a\x02\x08\x01"  # a header with the ID of the cluster

    server = grpc.server(ThreadPoolExecutor(1))
    handlers = {"Range": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("etcdserverpb.KV", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    trace = Readers().begin({"traceparent": f"00-{5:032x}-{6:016x}-01", "baggage": "k=v"})
    assert trace is not None
    members = Members(endpoints([f"http://127.0.0.1:{port}"]))
    await members.call(messages.RANGE, ASKED, repeatable=True)
    assert "traceparent" not in received[-1]
    token = record(trace)
    await members.call(messages.RANGE, ASKED, repeatable=True)
    stop_recording(token)
    assert received[-1]["traceparent"] == f"00-{5:032x}-{6:016x}-01"
    assert received[-1]["baggage"] == "k=v"
    await ended(members)
    server.stop(None).wait()
