"""Exponential back-off: the delays, their bound and jitter, and their clock."""

from __future__ import annotations

import asyncio
import re

import pytest

from steersman.testing.clock import Clock
from steersman.work.backoff import Backoff, Retries
from tests import ROOT

SOURCES = ROOT / "src" / "steersman"
DOUBLED = re.compile(r"\* 2(\.0)? \*\* |(wait|delay|pause|backoff)\w* \* 2\b|(wait|delay|pause|backoff)\w* \*= ")


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 5.0)
    assert [backoff.wait(failures) for failures in range(6)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_waits_grow_by_the_factor_and_without_a_longest() -> None:
    backoff = Backoff(2.0, factor=1.5)
    assert [backoff.wait(failures) for failures in range(3)] == [2.0, 3.0, 4.5]
    assert backoff.wait(20) == pytest.approx(2.0 * 1.5**20)


@pytest.mark.parametrize("failures", [65, 10_000, 10**30])
def test_any_number_of_failures_gives_a_finite_wait(failures: int) -> None:
    assert Backoff(1.0, 30.0).wait(failures) == 30.0
    assert Backoff(1.0).wait(failures) == 2.0**64


def test_jitter_makes_each_wait_longer_by_its_share_also_beyond_the_longest() -> None:
    backoff = Backoff(1.0, 2.0, jitter=0.5)
    assert [backoff.wait(failures, lambda: 0.5) for failures in range(3)] == [1.25, 2.5, 2.5]
    waits = [backoff.wait(0) for _ in range(100)]
    assert 1.0 <= min(waits) < max(waits) < 1.5


def test_attempts_that_fail_in_a_row_wait_longer_and_after_a_reset_as_at_first() -> None:
    retries = Retries(Backoff(1.0, 3.0))
    assert [retries.next() for _ in range(4)] == [1.0, 2.0, 3.0, 3.0]
    retries.reset()
    assert [retries.next(), retries.failures] == [1.0, 1]


async def test_pauses_are_on_the_clock_of_the_loop() -> None:
    clock = Clock()
    loop = asyncio.get_running_loop()
    began, ends = loop.time(), []

    async def attempt() -> None:
        retries = Retries(Backoff(60.0, 200.0))
        for _ in range(4):
            await retries.pause()
            ends.append(loop.time() - began)

    attempting = asyncio.ensure_future(attempt())
    await clock.advance(minutes=10)
    await attempting
    assert ends == pytest.approx([60, 180, 380, 580], abs=1)


async def test_a_pause_that_is_cancelled_has_counted_its_failure() -> None:
    retries = Retries(Backoff(3600.0))
    pausing = asyncio.ensure_future(retries.pause())
    await asyncio.sleep(0)
    pausing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pausing
    assert retries.next() == 7200.0


def test_waits_are_made_longer_here_alone() -> None:
    doubling = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if DOUBLED.search(path.read_text())}
    assert doubling == set()
