"""Token bucket: a burst of actions at once, and a number of them per second in the long run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf


class TokenBucket:
    """Bucket of at most `burst` tokens, full at first, to which `per_second` are added, as `clock` tells."""

    __slots__ = ("_burst", "_clock", "_filled_at", "_per_second", "_tokens")

    def __init__(self, burst: float, per_second: float, clock: Callable[[], float]) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._tokens = burst
        self._filled_at = clock()

    def take(self) -> float:
        """Take a token and return 0; without one, return the seconds until there is one."""
        now = self._clock()
        tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        if tokens < 1:
            self._tokens = tokens
            return (1 - tokens) / self._per_second if self._per_second else inf
        self._tokens = tokens - 1
        return 0.0

    async def wait(self) -> None:
        """Take a token once there is one."""
        while seconds := self.take():  # noqa: ASYNC110 - time brings the tokens
            await asyncio.sleep(seconds)
