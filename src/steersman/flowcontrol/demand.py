"""Demand of a priority level for seats over time, for borrowing and for histograms."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

SMOOTHING: Final = 0.977
"""Weight of the smoothed demand from one period to the next: half of it is left after five minutes."""


State = tuple[int, int, int, int]
"""State of a level: executing requests; occupied seats, including those of answered requests with lingering effects;
queued requests; the seats that these need.
"""


class Period(Struct):
    """A level's demand for seats, occupied and queued, in one period: seconds, mean, standard deviation and maximum."""

    seconds: float = 0.0
    average: float = 0.0
    deviation: float = 0.0
    highest: int = 0


class Demand(Struct):
    """Statistics by which a level's seats are allocated (k8s.io/apiserver `seatDemandStats`)."""

    average: float = 0.0
    deviation: float = 0.0
    highest: int = 0
    smoothed: float = 0.0

    def update(self, period: Period) -> None:
        """Update the statistics with another period."""
        self.highest = period.highest
        if period.seconds <= 0:
            return
        self.average, self.deviation = period.average, period.deviation
        envelope = period.average + period.deviation
        self.smoothed = max(envelope, SMOOTHING * self.smoothed + (1 - SMOOTHING) * envelope)


def summed_up(spent: dict[State, float], last: State) -> Period:
    """Return the period for the seconds spent in each state; `last` is its final state."""
    seconds = sum(spent.values())
    highest = max(seats + wanted for _, seats, _, wanted in (*spent, last))
    if seconds <= 0:
        return Period(highest=highest)
    total = squares = 0.0
    for (_, seats, _, wanted), time in spent.items():
        demand = seats + wanted
        total += demand * time
        squares += demand * demand * time
    average = total / seconds
    variance = squares / seconds - average * average
    return Period(seconds, average, math.sqrt(variance) if variance > 0 else 0.0, highest)


class TimeHistogram:
    """Histogram of the nanoseconds that a ratio spent in each bucket: upstream's observation at the end of every
    nanosecond.
    """

    __slots__ = ("_buckets", "series")

    def __init__(self, buckets: Sequence[float]) -> None:
        self._buckets = buckets
        self.series = [0.0] * (len(buckets) + 2)
        """Nanoseconds of each bucket and of the overflow, and the sum of ratios times nanoseconds."""

    def add(self, ratio: float, seconds: float) -> None:
        """Add a duration at a ratio."""
        nanoseconds = seconds * 1e9
        self.series[bisect_left(self._buckets, ratio)] += nanoseconds
        self.series[-1] += ratio * nanoseconds
