"""Curves: values over the time of day, or over another period, from a few points."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Final, Literal, NamedTuple

DAY: Final = 86400.0
_MONDAY: Final = 4 * DAY
"""A midnight (UTC) at which a week begins, in seconds since 1970. Periods are counted from it."""
_NOISE_SECONDS: Final = 15
"""Seconds for which noise stays the same, as long as a measurement of metrics-server."""

Interpolation = Literal["linear", "step"]


class Point(NamedTuple):
    """Value at a time, in seconds from the start of the period."""

    at: float
    value: float


class Curve:
    """Repeated curve through points: straight lines between them, or steps that keep a value until the next point."""

    def __init__(self, points: Sequence[Point], period: float = DAY, interpolation: Interpolation = "linear") -> None:
        """Create a curve.

        After the last point it leads to the first one of the next period. Raises ValueError for no points, for points
        that are not in ascending order, and for points outside of the period.
        """
        if not points:
            raise ValueError("a curve needs a point")
        if period <= 0 or points[0].at < 0 or points[-1].at >= period:
            raise ValueError(f"points must be from 0 to before the end of the period of {period:g} s")
        for one, other in pairwise(points):
            if one.at >= other.at:
                raise ValueError(f"the point at {other.at:g} s must be after the one at {one.at:g} s")
        self._period = period
        self._interpolation = interpolation
        self._times = [each.at for each in points]
        self._values = [each.value for each in points]

    def at(self, moment: float) -> float:
        """Return the value at a moment in seconds since 1970."""
        at = (moment - _MONDAY) % self._period
        after = bisect_right(self._times, at)
        before = after - 1  # -1 is the last point, of the period before
        value = self._values[before]
        if self._interpolation == "step":
            return value
        following = after % len(self._times)
        length = (self._times[following] - self._times[before]) % self._period
        passed = (at - self._times[before]) % self._period
        return value + (self._values[following] - value) * passed / length if length else value


def noise(seed: int, about: str, moment: float) -> float:
    """Return a number from -1 to 1 for what `about` names, the same for 15 seconds and for the same seed."""
    text = f"{seed}/{int(moment // _NOISE_SECONDS)}/{about}"
    number = int.from_bytes(blake2b(text.encode("utf-8", "surrogateescape"), digest_size=7).digest())
    return number / (1 << 55) - 1.0
