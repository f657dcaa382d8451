"""Stores on real storages, in memory and in a SQLite file, of a kind whose strategy records its calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.rest.bound import bind
from steersman.rest.resource import Resource
from steersman.storage.interface import Storage
from steersman.storage.memory import MemoryStorage
from steersman.storage.sqlite import SQLiteStorage
from steersman.store.store import Store
from tests.store.store_client import CONFIG_MAPS, StoreClient

OpenStore = Callable[..., Awaitable[StoreClient]]


@pytest.fixture(params=["memory", "sqlite"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    opened: Storage
    if request.param == "memory":
        opened = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    else:
        opened = await SQLiteStorage.open(tmp_path / "store.db", compaction_interval=0, lease_interval=0)
    yield opened
    await opened.close()


@pytest.fixture
async def open_client(storage: Storage) -> AsyncIterator[OpenStore]:
    """`await open_client(RESOURCE)` starts a store of that resource on the test's storage."""
    started: list[Store[Any]] = []

    async def start(resource: Resource[Any] = CONFIG_MAPS) -> StoreClient:
        store: Store[Any] = Store(bind(resource), storage)
        await store.start()
        started.append(store)
        return StoreClient(store)

    yield start
    for store in started:
        await store.stop()


@pytest.fixture
async def client(open_client: OpenStore) -> StoreClient:
    """A store of config maps with the usual strategy."""
    return await open_client()


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers get their events in the same iteration of the event loop as the change, however slow the machine is."""
    monkeypatch.setattr("steersman.storage.cache.watcher.TURN", 60.0)
