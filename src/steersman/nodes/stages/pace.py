"""Token bucket."""

from __future__ import annotations

import asyncio
from typing import Final


class Pace:
    """Bucket of at most `burst` tokens, to which `per_second` are added."""

    __slots__ = ("_at", "_burst", "_per_second", "_tokens")

    def __init__(self, burst: float, per_second: float) -> None:
        self._burst: Final = burst
        self._per_second: Final = per_second
        self._tokens = burst
        self._at = asyncio.get_running_loop().time()

    def take(self) -> float:
        """Take a token and return 0; without one, return the seconds until there is one."""
        now = asyncio.get_running_loop().time()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._per_second
        self._tokens -= 1
        return 0.0

    async def wait(self) -> None:
        """Take a token once there is one."""
        while True:
            seconds = self.take()
            if not seconds:
                return
            await asyncio.sleep(seconds)
