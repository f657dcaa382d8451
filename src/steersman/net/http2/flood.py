"""Limits of frames that cost the sender little and the receiver work: resets, pings, settings, empty frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.net.http2.frames import ConnectionFault, ErrorCode
from steersman.work.token_bucket import TokenBucket

FEW: Final = (2000, 200)
"""Burst, and rate in frames per second, of control frames and of resets."""
MANY: Final = (50_000, 20_000)
"""Burst, and rate per second, of WINDOW_UPDATE frames: a server may send two for each piece that it reads."""


class FrameBudget(TokenBucket):
    """Token bucket for one sort of frame; `bound` is (burst, frames per second)."""

    __slots__ = ("_sort",)

    def __init__(self, sort: str, bound: tuple[int, int], clock: Callable[[], float]) -> None:
        super().__init__(*bound, clock)
        self._sort = sort

    def spend(self) -> None:
        """Count one frame. Raises ConnectionFault if the budget is exhausted."""
        if self.take():
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"too many {self._sort}")
