"""Limits of frames that cost the sender little and the receiver work: resets, pings, settings, empty frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.net.http2.frames import ConnectionFault, ErrorCode

FEW: Final = (2000, 200)
"""Burst, and rate in frames per second, of control frames and of resets."""
MANY: Final = (50_000, 20_000)
"""Burst, and rate per second, of WINDOW_UPDATE frames: a server may send two for each piece that it reads."""


class FrameBudget:
    """Token bucket for one sort of frame; `bound` is (burst, frames per second)."""

    __slots__ = ("_burst", "_clock", "_rate", "_seen", "_sort", "_tokens")

    def __init__(self, sort: str, bound: tuple[int, int], clock: Callable[[], float]) -> None:
        self._sort = sort
        self._burst, self._rate = bound
        self._clock = clock
        self._tokens: float = self._burst
        self._seen = clock()

    def spend(self) -> None:
        """Count one frame. Raises ConnectionFault if the budget is exhausted."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._seen) * self._rate)
        self._seen = now
        if self._tokens < 1:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"too many {self._sort}")
        self._tokens -= 1
