"""Token buckets."""

from __future__ import annotations

import asyncio
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.work.token_bucket import TokenBucket


class Clock:
    """A clock that is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_taken_at_once_and_then_so_many_a_second() -> None:
    clock = Clock()
    bucket = TokenBucket(3, 2, clock)
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 0.5]
    clock.now += 0.25
    assert bucket.take() == 0.25
    clock.now += 0.25
    assert [bucket.take(), bucket.take()] == [0, 0.5]


def test_a_bucket_never_has_more_than_its_burst() -> None:
    clock = Clock()
    bucket = TokenBucket(2, 1, clock)
    clock.now += 1000
    assert [bucket.take() for _ in range(3)] == [0, 0, 1]


def test_a_bucket_that_is_not_filled_lets_only_its_burst_through() -> None:
    clock = Clock()
    bucket = TokenBucket(1, 0, clock)
    assert bucket.take() == 0
    clock.now += 1000
    assert bucket.take() == inf


@given(st.lists(st.floats(0, 10), max_size=50), st.integers(0, 5), st.sampled_from([0.25, 1, 4]))
def test_no_more_is_taken_than_the_burst_and_what_time_has_brought(
    pauses: list[float], burst: int, per_second: float
) -> None:
    clock = Clock()
    bucket, taken = TokenBucket(burst, per_second, clock), 0
    for pause in pauses:
        clock.now += pause
        taken += not bucket.take()
    assert taken <= burst + sum(pauses) * per_second + 1e-6


async def test_a_wait_ends_when_there_is_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    bucket, slept = TokenBucket(1, 2, clock), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for _ in range(3):
        await bucket.wait()
    assert slept == [0.5, 0.5]


async def test_a_wait_that_is_cancelled_takes_no_token() -> None:
    clock = Clock()
    bucket = TokenBucket(1, 1, clock)
    await bucket.wait()
    waiting = asyncio.create_task(bucket.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    clock.now += 1
    assert bucket.take() == 0


async def test_an_error_of_the_clock_reaches_the_caller_and_takes_no_token() -> None:
    clock, fails = Clock(), False

    def read() -> float:
        if fails:
            raise OSError("no clock")
        return clock()

    bucket = TokenBucket(1, 1, read)
    fails = True
    with pytest.raises(OSError, match="no clock"):
        await bucket.wait()
    fails = False
    assert bucket.take() == 0
