"""Exponential back-off: seconds to wait before the next attempt, longer after each failure in a row.

The seconds are meant for `asyncio.sleep`, `loop.call_later` and work queues. All of these use the event loop's clock,
which tests can move.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

_MOST_STEPS: Final = 64
"""Failures in a row after which waits stop growing, so that the power of `factor` stays a finite number."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Schedule of waits: `first` seconds, then `factor` times as long after each failure, up to `longest` seconds.

    Each wait is lengthened by a random share of itself, up to `jitter` (client-go `wait.Jitter`). The jitter may exceed
    `longest`.
    """

    first: float
    longest: float = inf
    factor: float = 2.0
    jitter: float = 0.0

    def wait(self, failures: int, chance: Callable[[], float] = random.random) -> float:
        """Return the seconds to wait after `failures` failures in a row; 0 failures give `first`.

        `chance` returns random numbers from 0 to 1 for the jitter.
        """
        seconds = min(self.first * self.factor ** min(failures, _MOST_STEPS), self.longest)
        return seconds * (1.0 + self.jitter * chance()) if self.jitter else seconds


class Retries:
    """Failures in a row of one operation that is retried, with the `Backoff` that its waits follow."""

    __slots__ = ("backoff", "failures")

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff
        self.failures = 0
        """Failures counted since the start or since the last `reset`."""

    def next(self) -> float:
        """Count a failure and return the seconds to wait before the next attempt."""
        seconds = self.backoff.wait(self.failures)
        self.failures += 1
        return seconds

    def reset(self) -> None:
        """Reset the count of failures after a success, so that the next wait is the first of the schedule."""
        self.failures = 0

    async def pause(self) -> None:
        """Count a failure and wait before the next attempt."""
        await asyncio.sleep(self.next())
