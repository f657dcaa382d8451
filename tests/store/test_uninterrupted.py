"""Work that continues when its caller is cancelled."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from steersman.storage.interface import StorageUnavailable
from steersman.store.uninterrupted import uninterrupted


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (StorageUnavailable("closed"), ("INFO", "a write was refused after its request had been cancelled: closed")),
        (RuntimeError("odd"), ("ERROR", "a write failed after its request had been cancelled")),
        (None, None),
    ],
    ids=str,
)
async def test_how_it_fails_after_the_caller_has_gone_is_logged_once(
    error: Exception | None, logged: tuple[str, str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    going, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await going.wait()
        ended.set()
        if error is not None:
            raise error

    caller = asyncio.create_task(uninterrupted(work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    going.set()
    await ended.wait()
    await asyncio.sleep(0)
    gc.collect()
    assert [(each.levelname, each.message) for each in caplog.records] == ([logged] if logged else [])


async def test_a_caller_who_waits_is_told() -> None:
    async def work() -> None:
        raise StorageUnavailable("closed")

    with pytest.raises(StorageUnavailable, match="closed"):
        await uninterrupted(work())
