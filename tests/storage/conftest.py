"""Stores to hold to the contract: every test that takes `store` runs on each implementation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from steersman.storage.encryption.ciphers import AESGCMCipher
from steersman.storage.encryption.storage import EncryptedStorage
from steersman.storage.interface import Storage
from steersman.storage.memory import MemoryStorage
from steersman.storage.sqlite import SQLiteStorage
from tests.storage.storage_model import Clock

OpenStore = Callable[[], Awaitable[Storage]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "encrypted"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> OpenStore:
    """Opens a fresh store without background tasks; a SQLite store opened again is the same one."""

    async def memory() -> Storage:
        return await MemoryStorage.open(compaction_interval=0, lease_interval=0, clock=clock)

    async def sqlite() -> Storage:
        return await SQLiteStorage.open(tmp_path / "store.db", compaction_interval=0, lease_interval=0, clock=clock)

    async def encrypted() -> Storage:
        inner = await sqlite()
        store = EncryptedStorage(inner, AESGCMCipher(b"k" * 32))
        store.expire_leases = inner.expire_leases  # type: ignore[attr-defined]
        return store

    return {"memory": memory, "sqlite": sqlite, "encrypted": encrypted}[request.param]


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Storage]:
    store = await open_store()
    yield store
    await store.close()


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers are told in the turn of the change, however slow the machine is."""
    monkeypatch.setattr("steersman.storage.cache.watcher._TURN", 60.0)
