"""How much was taken and wanted of a priority level over time, for what it may borrow and for its histograms."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SMOOTHING: Final = 0.977
"""How much of the smoothed demand stays from one period to the next: half of it after five minutes."""


State = tuple[int, int, int, int]
"""What of a level is taken and wanted at a time: requests in their main phase; seats taken, also by requests that are
answered and whose effects are still felt; requests in queues; the seats that these want."""


@dataclass(slots=True)
class Period:
    """A level's demand for seats, taken and wanted together, in one period: seconds, mean, deviation and maximum."""

    seconds: float = 0.0
    average: float = 0.0
    deviation: float = 0.0
    highest: int = 0


@dataclass(slots=True)
class Demand:
    """What the seats of a level are shared out by (k8s.io/apiserver `seatDemandStats`)."""

    average: float = 0.0
    deviation: float = 0.0
    highest: int = 0
    smoothed: float = 0.0

    def update(self, period: Period) -> None:
        """Takes another period into account."""
        self.highest = period.highest
        if period.seconds <= 0:
            return
        self.average, self.deviation = period.average, period.deviation
        envelope = period.average + period.deviation
        self.smoothed = max(envelope, SMOOTHING * self.smoothed + (1 - SMOOTHING) * envelope)


def summed_up(spent: dict[State, float], last: State) -> Period:
    """What the seconds spent in each state come to; `last` is the one that it ends in."""
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
    """For how many nanoseconds a ratio was in each bucket: what upstream observes at the end of every nanosecond."""

    __slots__ = ("_buckets", "series")

    def __init__(self, buckets: Sequence[float]) -> None:
        self._buckets = buckets
        self.series = [0.0] * (len(buckets) + 2)
        """The nanoseconds of each bucket and beyond the last, and the sum of ratios times nanoseconds."""

    def add(self, ratio: float, seconds: float) -> None:
        """Counts a time in."""
        nanoseconds = seconds * 1e9
        self.series[bisect_left(self._buckets, ratio)] += nanoseconds
        self.series[-1] += ratio * nanoseconds
