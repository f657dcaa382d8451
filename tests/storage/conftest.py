"""Stores to hold to the contract: every test that takes `store` runs on each implementation."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from steersman.machinery.shared_words import SharedWords
from steersman.storage.encryption.ciphers import AESGCMCipher
from steersman.storage.encryption.encrypted_values import EncryptedValues
from steersman.storage.etcd import EtcdStorage
from steersman.storage.interface import Storage
from steersman.storage.mapped import MappedStorage
from steersman.storage.memory import MemoryStorage
from steersman.storage.shared.client import SharedStorage
from steersman.storage.shared.server import StorageServer
from steersman.storage.sqlite import SQLiteStorage
from tests.storage.etcd.process import EtcdProcess
from tests.storage.storage_model import Clock

OpenStore = Callable[[], Awaitable[Storage]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def etcd_process(tmp_path: Path) -> Iterator[EtcdProcess]:
    """A fresh etcd; skips the test where there is none."""
    process = EtcdProcess(tmp_path / "etcd")
    process.start()
    yield process
    process.stop()


@pytest.fixture(params=["memory", "sqlite", "encrypted", "shared", "etcd"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> OpenStore:
    """Opens a fresh store without background tasks; a store of SQLite or etcd opened again is the same one."""
    if request.param == "etcd":
        process: EtcdProcess = request.getfixturevalue("etcd_process")
        return lambda: EtcdStorage.open([process.url], root="", compaction_interval=0)

    async def memory() -> Storage:
        return await MemoryStorage.open(compaction_interval=0, lease_interval=0, clock=clock)

    async def sqlite() -> SQLiteStorage:
        return await SQLiteStorage.open(tmp_path / "store.db", compaction_interval=0, lease_interval=0, clock=clock)

    async def encrypted() -> Storage:
        inner = await sqlite()
        store = MappedStorage(inner, EncryptedValues(AESGCMCipher(b"k" * 32)))
        store.expire_leases = inner.expire_leases  # type: ignore[attr-defined]
        return store

    async def shared() -> Storage:
        return await opened_shared(await sqlite())

    return {"memory": memory, "sqlite": sqlite, "encrypted": encrypted, "shared": shared}[request.param]


async def opened_shared(inner: SQLiteStorage) -> SharedStorage:
    """A storage of a worker, whose owner is in this process, and ends with it."""
    words = SharedWords.create()
    server = StorageServer(inner, words)
    await server.start()
    near, far = socket.socketpair()
    await server.connect(near, lambda: None)
    store = await SharedStorage.open(far, words)
    close = store.close

    async def expire_leases() -> None:
        await inner.expire_leases()
        await store.wait_until(inner.revision)

    async def close_both() -> None:
        await close()
        await server.stop()
        await inner.close()

    store.expire_leases = expire_leases  # type: ignore[attr-defined]
    store.close = close_both  # type: ignore[method-assign]
    return store


@pytest.fixture
def leasing_store(store: Storage) -> Storage:
    """A store whose leases expire by the tests' clock; those of etcd have separate tests."""
    if not hasattr(store, "expire_leases"):
        pytest.skip("leases run out in real time")
    return store


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Storage]:
    store = await open_store()
    yield store
    await store.close()


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers get their events in the same iteration of the event loop as the change, however slow the machine is."""
    monkeypatch.setattr("steersman.storage.cache.watcher.TURN", 60.0)
