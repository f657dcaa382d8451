"""Batching of events: sizes, waits, rates, and lost events."""

from __future__ import annotations

import asyncio

import pytest

from steersman.audit.backends import buffered as module
from steersman.audit.backends.backend import CLOSE_SECONDS
from steersman.audit.backends.buffered import Batching, Buffered
from steersman.testing.clock import Clock
from tests.audit.recorded import Kept, counted, record


def buffered(kept: Kept, **given: object) -> Buffered:
    usual = {"buffer_size": 10, "max_size": 3, "max_wait": 30.0, "throttle": False}
    return Buffered(kept, Batching(**(usual | given)), counted()[0])  # type: ignore[arg-type]


async def test_a_full_batch_is_sent_at_once_and_another_one_when_its_time_is_up() -> None:
    clock, kept = Clock(), Kept()
    backend = buffered(kept)
    for number in range(4):
        backend.process([record(number)])
        await asyncio.sleep(0)
    await clock.advance(seconds=1)
    assert kept.sizes == [3]
    await clock.advance(seconds=30)
    assert kept.sizes == [3, 1]
    await backend.close()


async def test_what_is_more_than_the_buffer_holds_is_lost_and_counted() -> None:
    kept, (errors, metrics) = Kept(), counted()
    kept.free.clear()
    backend = Buffered(kept, Batching(buffer_size=2, max_size=1, throttle=False, side_by_side=False), errors)
    await asyncio.sleep(0)
    for number in range(6):
        backend.process([record(number)])
        await asyncio.sleep(0.001)
    assert metrics.errors.value(("buffered",)) == 3
    kept.free.set()
    await backend.close()
    assert [each for batch in kept.batches for each in batch] == [record(0), record(1), record(2)]


async def test_large_events_are_lost_before_they_fill_the_memory_also_those_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Events under way have two copies in memory."""
    kept, (errors, metrics) = Kept(), counted()
    kept.free.clear()
    large = record(0, requestURI="/" + "a" * 1000)
    monkeypatch.setattr(module, "MOST_BYTES", 6 * len(large))
    backend = Buffered(kept, Batching(max_size=1, throttle=False), errors)
    for _ in range(5):
        backend.process([large])
        await asyncio.sleep(0.001)
    assert len(kept.batches) == 3
    assert metrics.errors.value(("buffered",)) == 2
    kept.free.set()
    await asyncio.sleep(0.001)
    backend.process([large])
    await backend.close()
    assert len(kept.batches) == 4


async def test_so_many_bytes_are_under_way_and_in_one_batch_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    kept.free.clear()
    large = record(0, requestURI="/" + "a" * 1000)
    monkeypatch.setattr(module, "LARGEST_BATCH", 2 * len(large))
    monkeypatch.setattr(module, "MOST_UNDER_WAY", 4 * len(large))
    backend = buffered(kept, buffer_size=100, max_size=50)
    await asyncio.sleep(0)
    for _ in range(9):
        backend.process([large])
    await asyncio.sleep(0.001)
    assert kept.sizes == [2, 2]
    kept.free.set()
    await backend.close()
    assert kept.sizes == [2, 2, 2, 2, 1]


async def test_batches_are_sent_side_by_side_where_they_may() -> None:
    kept = Kept()
    kept.free.clear()
    backend = buffered(kept, max_size=1)
    for number in range(3):
        backend.process([record(number)])
    await asyncio.sleep(0.01)
    assert kept.sizes == [1, 1, 1]
    kept.free.set()
    await backend.close()


async def test_a_throttle_lets_a_burst_through_and_then_so_many_a_second() -> None:
    clock, kept = Clock(), Kept()
    backend = buffered(kept, max_size=1, throttle=True, qps=2.0, burst=2)
    for number in range(5):
        backend.process([record(number)])
    await clock.advance(seconds=0.1)
    assert len(kept.batches) == 2
    await clock.advance(seconds=0.5)
    assert len(kept.batches) == 3
    await clock.advance(seconds=1)
    assert len(kept.batches) == 5
    await backend.close()


async def test_the_end_sends_what_there_is_and_takes_no_more(caplog: pytest.LogCaptureFixture) -> None:
    kept, (errors, metrics) = Kept(), counted()
    backend = Buffered(kept, Batching(throttle=False, max_size=2), errors)
    for number in range(5):
        backend.process([record(number)])
    await backend.close()
    assert kept.sizes == [2, 2, 1]
    assert kept.closed
    backend.process([record(9, requestURI="/late")])
    assert metrics.errors.value(("buffered",)) == 1
    assert "Error in audit plugin 'buffered' affecting 1 audit events: audit backend shut down" in caplog.text
    assert 'uri="/late"' in caplog.text


@pytest.mark.parametrize("side_by_side", [True, False])
async def test_the_end_waits_for_a_while_and_what_is_left_is_lost_and_counted(side_by_side: bool) -> None:
    clock, kept, (errors, metrics) = Clock(), Kept(), counted()
    kept.free.clear()
    batching = Batching(max_size=2, max_wait=30.0, throttle=False, side_by_side=side_by_side)
    backend = Buffered(kept, batching, errors)
    for number in range(5):
        backend.process([record(number)])
        await asyncio.sleep(0)
    closing = asyncio.ensure_future(backend.close())
    await clock.advance(seconds=CLOSE_SECONDS - 1)
    assert not closing.done()
    await clock.advance(seconds=2)
    await closing
    assert kept.closed
    assert metrics.errors.value(("buffered",)) == 5
