"""Caches are compared with a real etcd, and are reloaded if they differ."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from steersman.storage.cache import cacher as cacher_module
from steersman.storage.cache import consistency
from steersman.storage.cache.cacher import Cacher
from steersman.storage.cache.consistency import check
from steersman.storage.cache.entry import Entry
from steersman.storage.etcd import EtcdStorage
from steersman.storage.interface import Compacted, StorageUnavailable
from tests.storage.etcd.process import EtcdProcess

PODS = "/registry/pods/"


def present(value: bytes, revision: int) -> bytes:
    return b"%s@%d" % (value, revision)


def body_at(body: bytes, revision: int) -> bytes:
    return present(body.rpartition(b"@")[0], revision)


@pytest.fixture
async def etcd(etcd_process: EtcdProcess) -> AsyncIterator[EtcdStorage]:
    storage = await EtcdStorage.open([etcd_process.url], compaction_interval=0)
    yield storage
    await storage.close()


@pytest.fixture
async def cacher(etcd: EtcdStorage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cacher]:
    monkeypatch.setattr(cacher_module, "RELOAD_DELAY", 0.0)
    monkeypatch.setattr(consistency, "PART", 3)
    for number in range(10):
        await etcd.create(f"{PODS}ns/p{number}", b"v")
    await etcd.create("/registry/podtemplates/ns/t", b"v")  # which is not below the prefix
    made = Cacher(etcd, PODS, present=present, body_at=body_at)
    await made.start()
    yield made
    await made.stop()


async def test_a_cache_that_is_as_etcd_is_goes_on(cacher: Cacher, etcd: EtcdStorage) -> None:
    await check(cacher, etcd.revisions)
    assert cacher.counts.checks == {"success": 1, "failure": 0, "error": 0}
    empty = Cacher(etcd, "/registry/nothing/", present=present, body_at=body_at)
    await empty.start()
    await check(empty, etcd.revisions)
    assert empty.counts.checks["success"] == 1
    await empty.stop()


def put(cacher: Cacher, entry: Entry) -> None:
    cacher.entries[entry.key] = entry
    cacher.ordered.put(entry)


def with_another_revision(cacher: Cacher) -> None:
    key = f"{PODS}ns/p4"
    put(cacher, Entry(key, b"other@1", 1))


def with_one_too_few(cacher: Cacher) -> None:
    key = f"{PODS}ns/p9"
    del cacher.entries[key]
    cacher.ordered.discard(key)


def with_one_too_many(cacher: Cacher, name: str = "zz") -> None:
    key = f"{PODS}ns/{name}"
    put(cacher, Entry(key, b"other@1", 1))


def with_one_too_many_between(cacher: Cacher) -> None:
    with_one_too_many(cacher, "p2a")


@pytest.mark.parametrize(
    "spoil", [with_another_revision, with_one_too_few, with_one_too_many, with_one_too_many_between]
)
async def test_one_that_is_not_starts_over(
    cacher: Cacher, etcd: EtcdStorage, spoil: Callable[[Cacher], None], caplog: pytest.LogCaptureFixture
) -> None:
    ends: list[Exception] = []
    cacher.watch(PODS, after_revision=None, deliver=lambda _: None, closed=ends.append)
    spoil(cacher)
    await check(cacher, etcd.revisions)
    assert [type(error) for error in ends] == [Compacted]  # clients list anew
    assert "/registry/pods/ differs from storage and is reloaded: at revision" in caplog.text
    await asyncio.wait_for(cacher.wait_until_ready(), 10)
    await check(cacher, etcd.revisions)
    assert cacher.counts.checks == {"success": 1, "failure": 1, "error": 0}
    assert [entry.body.partition(b"@")[0] for entry in cacher.list(PODS)[0]] == [b"v"] * 10


async def test_what_is_written_meanwhile_makes_no_difference(cacher: Cacher, etcd: EtcdStorage) -> None:
    done = asyncio.Event()

    async def write(number: int) -> None:
        while not done.is_set():
            made = await etcd.create(f"{PODS}ns/{number}", b"v")
            known = cacher.entries[f"{PODS}ns/p{number}"]
            await etcd.update(known.key, b"v", expected_revision=known.revision)
            await etcd.delete(made.key, expected_revision=made.mod_revision)

    writers = [asyncio.create_task(write(number)) for number in range(4)]
    before = etcd.revision
    for _ in range(10):
        await check(cacher, etcd.revisions)
    done.set()
    await asyncio.gather(*writers)
    assert etcd.revision > before
    assert cacher.counts.checks == {"success": 10, "failure": 0, "error": 0}


async def test_what_cannot_be_compared_is_counted(cacher: Cacher, etcd: EtcdStorage) -> None:
    async def fail(*_: object) -> tuple[list[tuple[str, int]], bool]:
        raise StorageUnavailable("no member answers")

    await check(cacher, fail)
    assert cacher.counts.checks == {"success": 0, "failure": 0, "error": 1}
    assert cacher.ready
