"""Exponential back-off: seconds to wait before a next attempt, longer after each failure in a row.

Waits are seconds for `asyncio.sleep`, `loop.call_later` and a work queue, and so on the event loop's clock, which tests
move.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

_MOST_STEPS: Final = 64
"""Failures after which no wait grows any more: powers of these stay finite."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A schedule of waits: `first` seconds, then `factor` times as long each time, up to `longest`.

    Each wait is longer by a random share of itself, up to `jitter` (client-go `wait.Jitter`), also beyond `longest`.
    """

    first: float
    longest: float = inf
    factor: float = 2.0
    jitter: float = 0.0

    def wait(self, failures: int, chance: Callable[[], float] = random.random) -> float:
        """Return the seconds to wait after this many earlier failures in a row: `first` after none.

        `chance` gives numbers from 0 to 1 for the jitter.
        """
        seconds = min(self.first * self.factor ** min(failures, _MOST_STEPS), self.longest)
        return seconds * (1.0 + self.jitter * chance()) if self.jitter else seconds


class Retries:
    """Attempts at one thing: the state that goes with a `Backoff`."""

    __slots__ = ("backoff", "failures")

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff
        self.failures = 0
        """Waits since the start or the last `reset`."""

    def next(self) -> float:
        """Count a failure and return the seconds to wait before the next attempt."""
        seconds = self.backoff.wait(self.failures)
        self.failures += 1
        return seconds

    def reset(self) -> None:
        """Begin again with the first wait: an attempt has succeeded."""
        self.failures = 0

    async def pause(self) -> None:
        """Count a failure and wait before the next attempt."""
        await asyncio.sleep(self.next())
