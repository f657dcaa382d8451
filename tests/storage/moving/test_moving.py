"""A SQLite file into an etcd and back: nothing is lost, nothing is in the future, and half a copy is none."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.storage.etcd import EtcdStorage, messages
from steersman.storage.interface import Compacted, StorageFormatError, StorageLocked, StorageUnavailable
from steersman.storage.moving.cluster import Cluster
from steersman.storage.moving.to_etcd import copy_to_etcd
from steersman.storage.moving.to_sqlite import copy_to_sqlite
from steersman.storage.sqlite import SQLiteStorage
from tests.storage.etcd.process import EtcdProcess
from tests.storage.storage_model import Recorder

KEPT = {
    "/registry/configmaps/default/a": b'{"kind":"ConfigMap"}\n',
    "/registry/secrets/default/sealed": b"k8s:enc:aescbc:v1:key:\x00\xff",
    "/registry/pods/default/web": b"k8s\x00\n\x00\xfe",
}


@pytest.fixture
async def cluster(etcd_process: EtcdProcess) -> AsyncIterator[Cluster]:
    made = Cluster([etcd_process.url], None, "/registry")
    yield made
    made.close()


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """A file with some history, a key that lives for an hour and one whose time is over."""
    path = tmp_path / "steersman.db"
    store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
    for key, value in KEPT.items():
        await store.create(key, value)
    events = [store.create(f"/registry/events/default/{number:03}", b"{}", ttl=3600) for number in range(300)]
    await asyncio.gather(*events)
    await store.create("/registry/leases/gone", b"{}", ttl=1)
    for _ in range(20):
        again = await store.create("/registry/pods/default/short", b"{}")
        await store.delete(again.key, expected_revision=again.mod_revision)
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE log SET expires = 1, checksum = NULL WHERE key = '/registry/leases/gone'")
    connection.close()
    return path


async def opened(process: EtcdProcess) -> EtcdStorage:
    return await EtcdStorage.open([process.url], compaction_interval=0)


def ignore(_: str) -> None: ...


def contents(file: Path) -> bytes:
    return file.read_bytes()


async def test_what_is_copied_is_the_same_and_later_than_all_before(
    file: Path, cluster: Cluster, etcd_process: EtcdProcess
) -> None:
    store = await SQLiteStorage.open(file, compaction_interval=0, lease_interval=0)
    newest = store.revision
    await store.close()
    moved = await copy_to_etcd(file, cluster, ignore)
    storage = await opened(etcd_process)
    try:
        found = await storage.range("/registry/")
        values = {item.key: item.value for item in found.items}
        assert {key: values[key] for key in KEPT} == KEPT
        assert len(values) == len(KEPT) + 300
        assert moved.keys == len(KEPT)
        assert min(item.mod_revision for item in found.items) > newest
        assert moved.revision == found.revision
        with pytest.raises(Compacted):
            await storage.subscribe("/registry/", after_revision=newest, deliver=Recorder())
    finally:
        await storage.close()


async def test_what_expires_does_so_when_it_would_have(file: Path, cluster: Cluster) -> None:
    await copy_to_etcd(file, cluster, ignore)
    revision, _, _ = await cluster.state()
    leases = {each.lease async for page in cluster.pages(revision) for each in page if b"/events/" in each.key}
    assert 0 not in leases
    for lease in leases:
        assert 3500 < await cluster.seconds_left(lease) <= 3660


async def test_there_and_back_is_what_there_was(file: Path, cluster: Cluster, tmp_path: Path) -> None:
    await copy_to_etcd(file, cluster, ignore)
    revision, _, _ = await cluster.state()
    back = tmp_path / "back.db"
    moved = await copy_to_sqlite(cluster, back, ignore)
    assert moved.revision == revision
    store = await SQLiteStorage.open(back, compaction_interval=0, lease_interval=0)
    try:
        assert store.revision == revision
        found = await store.range("/registry/")
        in_etcd = {cluster.inner(each.key): each async for page in cluster.pages(revision) for each in page}
        assert {item.key: (item.value, item.mod_revision) for item in found.items} == {
            key: (each.value, each.mod_revision) for key, each in in_etcd.items()
        }
        with pytest.raises(Compacted):
            await store.subscribe("/registry/", after_revision=revision - 1, deliver=Recorder())
        assert (await store.create("/registry/new", b"{}")).mod_revision == revision + 1
    finally:
        await store.close()
    with contextlib.closing(sqlite3.connect(back)) as connection, connection:
        (lasting,) = connection.execute("SELECT count(*) FROM log WHERE expires > 0").fetchone()
    connection.close()
    assert lasting == 300


async def test_an_etcd_that_has_keys_is_left_as_it_is(file: Path, cluster: Cluster) -> None:
    await cluster.store("/registry/other", b"{}", 0)
    before = await cluster.state()
    with pytest.raises(StorageFormatError, match="etcd already has keys below /registry"):
        await copy_to_etcd(file, cluster, ignore)
    assert await cluster.state() == before


async def test_an_etcd_without_keys_is_not_copied(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(StorageFormatError, match="below /registry etcd has no keys, nothing was copied"):
        await copy_to_sqlite(cluster, tmp_path / "none.db", ignore)
    assert not (tmp_path / "none.db").exists()


async def test_half_a_copy_is_none_and_the_next_one_begins_anew(
    file: Path, cluster: Cluster, etcd_process: EtcdProcess, tmp_path: Path
) -> None:
    copying = asyncio.create_task(copy_to_etcd(file, cluster, ignore))
    while (await cluster.state())[0] < 400 and not copying.done():  # noqa: ASYNC110 - nobody tells of that
        await asyncio.sleep(0)
    copying.cancel()
    await asyncio.gather(copying, return_exceptions=True)
    await cluster.mark()
    await cluster.store("/registry/left/over", b"{}", 0)
    with pytest.raises(StorageFormatError, match="run it again"):
        await opened(etcd_process)
    with pytest.raises(StorageFormatError, match="the copy below --etcd-prefix is incomplete"):
        await copy_to_sqlite(cluster, tmp_path / "half.db", ignore)
    assert not (tmp_path / "half.db").exists()
    await copy_to_etcd(file, cluster, ignore)
    storage = await opened(etcd_process)
    assert await storage.get("/registry/left/over") is None
    assert await storage.get("/registry/pods/default/web") is not None
    await storage.close()


async def test_a_copy_is_not_complete_while_another_one_has_begun(
    file: Path, cluster: Cluster, etcd_process: EtcdProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Cluster([etcd_process.url], None, "/registry")
    compact = cluster.compact

    async def meanwhile(revision: int) -> None:
        await other.claim((await other.state())[2])
        await compact(revision)

    monkeypatch.setattr(cluster, "compact", meanwhile)
    try:
        with pytest.raises(StorageUnavailable, match="another copy"):
            await copy_to_etcd(file, cluster, ignore)
        with pytest.raises(StorageFormatError, match="run it again"):
            await opened(etcd_process)
        found = (await other.state())[2]
        await other.mark()
        with pytest.raises(StorageUnavailable, match="in the meantime"):
            await other.claim(found)
    finally:
        other.close()


async def test_a_file_that_a_server_has_open_is_not_copied(file: Path, cluster: Cluster, tmp_path: Path) -> None:
    store = await SQLiteStorage.open(file)
    try:
        with pytest.raises(StorageLocked):
            await copy_to_etcd(file, cluster, ignore)
    finally:
        await store.close()
    assert not (await cluster.state())[1]


async def test_a_file_that_is_there_is_not_written_over(file: Path, cluster: Cluster) -> None:
    before = contents(file)
    with pytest.raises(StorageFormatError, match="already exists"):
        await copy_to_sqlite(cluster, file, ignore)
    assert contents(file) == before


async def test_keys_of_one_transaction_get_revisions_of_their_own(cluster: Cluster, tmp_path: Path) -> None:
    puts = b"".join(_put_in_txn(f"/registry/one/{name}".encode()) for name in "abc")
    await cluster.call(messages.TXN, puts)
    moved = await copy_to_sqlite(cluster, tmp_path / "new.db", ignore)
    store = await SQLiteStorage.open(tmp_path / "new.db", compaction_interval=0, lease_interval=0)
    found = await store.range("/registry/one/")
    assert len({item.mod_revision for item in found.items}) == 3
    assert moved.revision == store.revision >= max(item.mod_revision for item in found.items)
    await store.close()


def _put_in_txn(key: bytes) -> bytes:
    """An operation that is done if nothing is compared."""
    put = messages.put(key, b"{}")
    request = b"\x12" + bytes([len(put)]) + put
    return b"\x12" + bytes([len(request)]) + request


async def test_an_etcd_that_refuses_a_value_leaves_no_copy_that_looks_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "steersman.db"
    store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
    await store.create("/registry/large", b"{" + b" " * (2 << 20))
    await store.close()
    process = EtcdProcess(tmp_path / "etcd", "--max-request-bytes", "1500000")
    process.start()
    cluster = Cluster([process.url], None, "/registry")
    try:
        with pytest.raises(StorageUnavailable, match=r"/registry/large cannot be stored.*--max-request-bytes"):
            await copy_to_etcd(path, cluster, ignore)
        assert (await cluster.state())[2]
    finally:
        cluster.close()
        process.stop()
