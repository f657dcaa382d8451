"""The store on etcd: others who write, members that die, are silent, or have forgotten what happened."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.controlplane.storage_health import not_ready, storage_fault
from steersman.storage.cache.cacher import Cacher
from steersman.storage.etcd import EtcdStorage, messages
from steersman.storage.etcd.compaction import KEY, Compactor
from steersman.storage.interface import Compacted, Event, OutcomeUnknown, StorageUnavailable, ValueRefused
from steersman.storage.keys import after
from tests.storage.etcd.process import EtcdProcess
from tests.storage.storage_model import Recorder, write_at_random


async def opened(process: EtcdProcess, root: str = "") -> EtcdStorage:
    return await EtcdStorage.open([process.url], root=root, compaction_interval=0)


@pytest.fixture
async def store(etcd_process: EtcdProcess) -> AsyncIterator[EtcdStorage]:
    store = await opened(etcd_process)
    yield store
    await store.close()


@pytest.fixture
async def other(etcd_process: EtcdProcess) -> AsyncIterator[EtcdStorage]:
    """Another server's."""
    store = await opened(etcd_process)
    yield store
    await store.close()


async def seen(recorder: Recorder, count: int) -> list[Event]:
    async with asyncio.timeout(20):
        while len(recorder.events) < count:  # noqa: ASYNC110 - the recorder is told, nobody waits for it
            await asyncio.sleep(0.01)
    return recorder.events


async def test_what_others_write_is_told_of_and_waited_for(store: EtcdStorage, other: EtcdStorage) -> None:
    recorder = Recorder()
    await store.subscribe("/a/", after_revision=1, deliver=recorder)
    written = await other.create("/a/1", b"1")
    revision = await store.current_revision()
    assert revision == written.mod_revision
    await store.wait_until(revision)
    assert recorder.events == [Event(revision, "/a/1", written, None)]
    assert store.revision == revision


async def test_many_writers_on_two_stores_are_told_of_in_the_same_order(store: EtcdStorage, other: EtcdStorage) -> None:
    recorders = [Recorder(), Recorder()]
    await store.subscribe("", after_revision=1, deliver=recorders[0])
    await other.subscribe("", after_revision=1, deliver=recorders[1])
    await asyncio.gather(
        *(write_at_random((store, other)[writer % 2], random.Random(writer), 40) for writer in range(8))
    )
    last = await store.current_revision()
    await asyncio.gather(store.wait_until(last), other.wait_until(last))
    assert recorders[0].events == recorders[1].events
    assert recorders[0].revisions == list(range(2, last + 1))


async def test_a_revision_that_changed_nothing_below_the_root_is_reached(etcd_process: EtcdProcess) -> None:
    store, outside = await opened(etcd_process, "/registry"), await opened(etcd_process)
    try:
        await outside.create("/elsewhere", b"1")
        async with asyncio.timeout(10):
            await store.wait_until(await store.current_revision())
        assert store.revision == 2
    finally:
        await store.close()
        await outside.close()


async def test_keys_begin_with_the_root_that_is_given(etcd_process: EtcdProcess) -> None:
    moved, plain = await opened(etcd_process, "/mine/here/"), await opened(etcd_process)
    try:
        recorder = Recorder()
        await moved.subscribe("/registry/pods/", after_revision=1, deliver=recorder)
        written = await moved.create("/registry/pods/a", b"1")
        assert written.key == "/registry/pods/a"
        assert [each.key for each in recorder.events] == ["/registry/pods/a"]
        assert [each.key for each in (await plain.range("")).items] == ["/mine/here/pods/a"]
        assert [each.key for each in (await moved.range("/registry/")).items] == ["/registry/pods/a"]
    finally:
        await moved.close()
        await plain.close()


async def test_keys_vanish_with_their_leases(store: EtcdStorage) -> None:
    recorder = Recorder()
    await store.subscribe("", after_revision=1, deliver=recorder)
    short = await store.create("/short", b"1", ttl=1)
    await store.create("/freed", b"1", ttl=1)
    freed = await store.update("/freed", b"2", expected_revision=3)
    long = await store.create("/long", b"1", ttl=1000)
    event = (await seen(recorder, 5))[4]
    assert (event.key, event.current, event.previous) == ("/short", None, short)
    assert list((await store.range("/")).items) == [freed, long]


async def test_keys_of_about_the_same_time_share_a_lease(store: EtcdStorage) -> None:
    first, second = await store.leases.lease_for(3600), await store.leases.lease_for(3600)
    assert first == second
    assert await store.leases.lease_for(60) != first


async def test_a_lease_that_is_gone_is_replaced(store: EtcdStorage) -> None:
    lease = await store.leases.lease_for(3600)
    store.leases._id = lease + 1  # which nobody has granted
    written = await store.create("/a", b"1", ttl=3600)
    assert await store.get("/a") == written


async def test_it_goes_on_where_it_was_when_etcd_comes_back(store: EtcdStorage, etcd_process: EtcdProcess) -> None:
    recorder = Recorder()
    await store.subscribe("", after_revision=1, deliver=recorder)
    await store.create("/a", b"1")
    etcd_process.kill()
    with pytest.raises(StorageUnavailable):
        await store.create("/b", b"1")
    with pytest.raises(StorageUnavailable):
        await store.current_revision()
    await asyncio.to_thread(etcd_process.start)
    written = await store.create("/c", b"1")
    assert [event.key for event in await seen(recorder, 2)] == ["/a", "/c"]
    assert store.revision == written.mod_revision


async def test_members_that_are_away_or_silent_are_left_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.storage.etcd.store.MEMBER_SECONDS", 0.3)

    held: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    process = EtcdProcess(tmp_path / "etcd")
    try:
        await asyncio.to_thread(process.start)
        port = silent.sockets[0].getsockname()[1]
        servers = [f"http://127.0.0.1:{port}", "http://127.0.0.1:1", process.url]
        for _ in range(5):  # which one is asked first is up to chance
            store = await EtcdStorage.open(servers, root="", compaction_interval=0)
            assert await store.get("/a") is None
            await store.close()
    finally:
        process.stop()
        silent.close()
        for each in held:
            each.close()


async def test_nobody_who_answers_is_told_of() -> None:
    with pytest.raises(StorageUnavailable, match=r"no member of etcd answers: http://127\.0\.0\.1:1"):
        await EtcdStorage.open(["http://127.0.0.1:1"], start_seconds=0.3)


@pytest.mark.parametrize("url", ["ftp://a:1", "http://", "http://a/path"])
async def test_what_is_no_url_of_a_member_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="not the URL of an etcd member"):
        await EtcdStorage.open([url])


async def test_caches_start_over_when_changes_are_no_longer_kept(
    store: EtcdStorage, other: EtcdStorage, etcd_process: EtcdProcess
) -> None:
    cacher = Cacher(store, "/a/", present=lambda value, _: value, body_at=lambda body, _: body)
    await store.create("/a/1", b"1")
    await store.create("/a/2", b"1")
    await cacher.start()
    ended: list[Exception] = []
    cacher.watch("/a/", after_revision=None, deliver=lambda event: None, closed=ended.append)
    await store.watch_loop.stop()  # as if it were cut off
    await other.delete("/a/1", expected_revision=2)
    last = await other.create("/a/3", b"1")
    await other.compact(last.mod_revision)
    store.watch_loop.start(store.revision)
    async with asyncio.timeout(20):
        while not ended or not cacher.ready:  # noqa: ASYNC110 - nothing announces that it began anew
            await asyncio.sleep(0.01)
    assert isinstance(ended[0], Compacted)
    await cacher.wait_fresh(last.mod_revision)
    assert [entry.key for entry in cacher.list("/a/")[0]] == ["/a/2", "/a/3"]
    written = await store.create("/a/4", b"1")
    assert cacher.get("/a/4") is not None
    assert cacher.revision == written.mod_revision
    await cacher.stop()


async def test_servers_agree_on_compaction(store: EtcdStorage, other: EtcdStorage) -> None:
    first, second = Compactor(store.members), Compactor(other.members)
    for each in (first, second):
        await each.tick()
    for number in range(5):
        await store.create(f"/{number}", b"1")
    for each in (first, second, first, second):
        await each.tick()
    compacted = max(first.compacted, second.compacted)
    assert compacted > 1
    with pytest.raises(Compacted):
        await store.get("/0", revision=compacted - 1)
    assert len((await store.range("/")).items) == 5


async def test_compaction_takes_two_rounds(store: EtcdStorage) -> None:
    compactor = Compactor(store.members)
    await compactor.tick()
    written = await store.create("/a", b"1")
    await compactor.tick()
    assert compactor.compacted < written.mod_revision
    await compactor.tick()
    assert compactor.compacted >= written.mod_revision


async def test_questions_for_the_newest_revision_are_joined(store: EtcdStorage) -> None:
    asked = 0
    look = store.check_newest

    async def counted() -> int:
        nonlocal asked
        asked += 1
        return await look()

    store.check_newest = counted  # type: ignore[method-assign]
    assert await asyncio.gather(*(store.current_revision() for _ in range(100))) == [1] * 100
    assert asked <= 2


async def test_a_write_whose_event_went_by_unseen_is_told_of_as_unknown(
    store: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.watch_loop.stop()  # as if it started over while the answer was on its way
    call = store.members.call

    async def late(method: str, message: bytes, *, repeatable: bool) -> bytes:
        data = await call(method, message, repeatable=repeatable)
        store._progressed(messages.read_txn(data).revision)
        return data

    monkeypatch.setattr(store.members, "call", late)
    async with asyncio.timeout(5):
        with pytest.raises(OutcomeUnknown, match="was committed"):
            await store.create("/a", b"1")


async def test_closing_does_not_wait_for_writes_that_never_end(
    etcd_process: EtcdProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.storage.etcd.store.LAST_SECONDS", 0.1)
    store = await opened(etcd_process)
    await store.watch_loop.stop()
    unseen = asyncio.ensure_future(store.create("/a", b"1"))
    while await store.get("/a") is None:  # noqa: ASYNC110 - it is told by nobody
        await asyncio.sleep(0.01)
    etcd_process.pause()
    unanswered = asyncio.ensure_future(store.create("/b", b"1"))
    await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        await store.close()
    for each in (unseen, unanswered):
        with pytest.raises(OutcomeUnknown):
            await each


@pytest.mark.parametrize("value", [b"9" * 5000, b"99999999", "٣".encode(), b"-1", b"1x"])
async def test_what_is_no_revision_in_the_key_of_compactions_is_not_believed(store: EtcdStorage, value: bytes) -> None:
    request = messages.put_if_version(KEY, value, version=0)
    await store.members.call(messages.TXN, request, repeatable=False)
    compactor = Compactor(store.members)
    await compactor.tick()
    assert compactor.compacted == 0


async def test_questions_that_fail_fail_for_those_who_have_asked_meanwhile(
    store: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    ends = asyncio.Event()

    async def fails() -> int:
        asked.set()
        await ends.wait()
        raise StorageUnavailable("nobody answers")

    monkeypatch.setattr(store, "check_newest", fails)
    first = asyncio.ensure_future(store.current_revision())
    await asked.wait()
    monkeypatch.undo()
    second = asyncio.ensure_future(store.current_revision())
    await asyncio.sleep(0)
    ends.set()
    for each in (first, second):
        with pytest.raises(StorageUnavailable, match="nobody answers"):
            await each
    assert await store.current_revision() == 1


async def test_all_begins_anew_when_etcd_has_gone_back(etcd_process: EtcdProcess) -> None:
    """The state is that of an etcd that was restored from a backup while servers ran on it."""
    store = await opened(etcd_process)
    cacher = Cacher(store, "/a/", present=lambda value, _: value, body_at=lambda body, _: body)
    for number in range(5):
        await store.create(f"/a/{number}", b"1")
    await cacher.start()
    ended: list[Exception] = []
    cacher.watch("/a/", after_revision=None, deliver=lambda event: None, closed=ended.append)
    etcd_process.kill()
    shutil.rmtree(etcd_process.folder)
    await asyncio.to_thread(etcd_process.start)
    try:
        async with asyncio.timeout(30):
            while store.revision > 5:
                with contextlib.suppress(StorageUnavailable):
                    await store.current_revision()
                await asyncio.sleep(0.05)
            await cacher.wait_until_ready()
            written = await store.create("/a/new", b"1")
        assert ended
        assert written.mod_revision == 2
        assert [entry.key for entry in cacher.list("/a/")[0]] == ["/a/new"]
    finally:
        await cacher.stop()
        await store.close()


async def test_a_key_that_is_no_text_is_read_from_and_deleted_as_any_other(store: EtcdStorage) -> None:
    for key in (b"/registry/a/\xff", b"/registry/a/\xffb"):
        await store.members.call(messages.PUT, messages.put(key, b"1"), repeatable=False)
    (first, second) = (await store.range("/registry/a/")).items
    assert await store.get(first.key) == first
    assert await store.revisions("/registry/a/", after(first.key), 1, 0) == ([(second.key, second.mod_revision)], False)
    await store.delete(first.key, expected_revision=first.mod_revision)
    assert (await store.range("/registry/a/")).items == [second]


async def test_an_etcd_without_space_is_told_and_a_large_value_is_not(tmp_path: Path) -> None:
    etcd = EtcdProcess(tmp_path / "full", "--quota-backend-bytes=4000000", "--max-request-bytes=1500000")
    etcd.start()
    store = await EtcdStorage.open([etcd.url], compaction_interval=0)
    try:
        for size, why in ((1_600_000, "request is too large"), (3_000_000, "message larger than max")):
            with pytest.raises(ValueRefused, match=why):
                await store.create("/registry/large", b"x" * size)
        assert store.refusals.wrong() is None
        for number in range(100):
            with contextlib.suppress(StorageUnavailable):
                await store.create(f"/registry/{number}", b"x" * 1_000_000)
            if store.refusals.writes.total:
                break
        assert store.refusals.wrong() == "storage refuses to write: etcdserver: mvcc: database space exceeded"
        assert await storage_fault(store, 5) is None
        assert await not_ready(store, 5) == store.refusals.wrong()
    finally:
        await store.close()
        etcd.stop()
