"""The start waits for caches up to --storage-initialization-timeout; requests that need a cache still wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.authentication.user import UserInfo
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.storage.interface import Range, StorageUnavailable
from steersman.storage.memory import MemoryStorage
from steersman.testing.client import Client
from tests.controlplane.shared_storage import parts_on

ADMIN = UserInfo("admin", groups=("system:masters",))
PODS = "/api/v1/namespaces/default/pods"


class SlowForPods(MemoryStorage):
    """A storage whose reads of pods are late, and fail at first."""

    def __init__(self) -> None:
        super().__init__(compaction_interval=0, lease_interval=0)
        self.may_be_read = asyncio.Event()
        self.reads = 0

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0, count: bool = False
    ) -> Range:
        if prefix == "/registry/pods/":
            self.reads += 1
            await self.may_be_read.wait()
            if self.reads == 1:
                raise StorageUnavailable("not yet")
        return await super().range(prefix, start=start, limit=limit, revision=revision, count=count)


@pytest.fixture
async def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ControlPlane, SlowForPods]]:
    storage = SlowForPods()

    async def opened(_: Options) -> SlowForPods:
        return storage

    monkeypatch.setattr("steersman.controlplane.stores.RETRY", 0.01)
    options = Options(data_dir=tmp_path, listen=False, storage="memory", storage_initialization_timeout=0.3)
    plane = ControlPlane(options, parts=parts_on(opened))
    await plane.start()
    yield plane, storage
    await plane.stop()


async def test_the_start_goes_on_without_them(
    late: tuple[ControlPlane, SlowForPods], caplog: pytest.LogCaptureFixture
) -> None:
    plane, storage = late
    client = Client(plane, {"admin": plane.token_of(ADMIN)}, "admin")
    assert (await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})).status == 201
    unready = await client.get("/readyz")
    assert (unready.status, b"[-]informer-sync failed" in unready.body) == (500, True)
    listed = asyncio.create_task(client.get(PODS))
    done, _ = await asyncio.wait((listed,), timeout=0.2)
    assert not done
    storage.may_be_read.set()
    assert (await listed).status == 429  # that of the first time, which is tried again
    async with asyncio.timeout(10):
        while (await client.get("/readyz")).status != 200:  # noqa: ASYNC110 - it is asked over the wire
            await asyncio.sleep(0.02)
    assert storage.reads == 2
    assert (await client.get(PODS)).json()["items"] == []
    assert "filling the cache of /registry/pods/ failed and will be retried: not yet" in caplog.text


async def test_it_can_be_ended_meanwhile(late: tuple[ControlPlane, SlowForPods]) -> None:
    plane, _ = late
    async with asyncio.timeout(10):
        await plane.stop()
