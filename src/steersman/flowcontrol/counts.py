"""Counts of the requests of one flow schema at one priority level.

Most requests need one seat and get it at once. Only their number is counted, and added to the histograms at a scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

DURATIONS: Final = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
"""Buckets in seconds."""
LENGTHS: Final = (0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)
SEATS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
WATCHES: Final = (0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0)


def empty(buckets: tuple[float, ...]) -> list[float]:
    """Return an empty series: the count of each bucket, of the overflow, and the sum."""
    return [0.0] * (len(buckets) + 2)


def observe(buckets: tuple[float, ...], series: list[float], value: float) -> None:
    """Count a value."""
    series[bisect_left(buckets, value)] += 1
    series[-1] += value


class SchemaCounts:
    """Counts of one flow schema at one priority level."""

    __slots__ = (
        "at_once",
        "executing",
        "executing_seats",
        "in_vain",
        "lengths",
        "narrow",
        "queued",
        "queued_seats",
        "regular",
        "rejected",
        "unaccommodated",
        "unqueued",
        "unwatched",
        "waited",
        "watch",
        "watches",
        "wide",
        "without_queue",
    )

    def __init__(self) -> None:
        self.at_once = 0
        self.unqueued = 0
        self.narrow = 0
        """Requests of one seat."""
        self.unwatched = 0
        """Writes without a watch to notify."""
        self.executing = self.executing_seats = 0
        self.queued = self.queued_seats = 0
        self.unaccommodated = 0
        self.rejected: dict[str, int] = {}
        self.wide = empty(SEATS)
        self.lengths = empty(LENGTHS)
        self.waited = empty(DURATIONS)
        """Waiting times of queued requests, including those that gave up."""
        self.in_vain = 0
        self.without_queue = empty(DURATIONS)
        """Waiting times of requests that were refused at once."""
        self.regular = empty(DURATIONS)
        """Execution times of requests other than watches."""
        self.watch = empty(DURATIONS)
        self.watches = empty(WATCHES)

    def joined(self, length: int) -> None:
        """Count a request that has joined a queue; `length` includes the request."""
        observe(LENGTHS, self.lengths, length)

    def not_accommodated(self) -> None:
        """Count a failed dispatch: the next request needs more seats than are free."""
        self.unaccommodated += 1

    def refused(self, reason: str) -> None:
        """Count a request that was refused or gave up."""
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def estimated(self, seats: int) -> None:
        """Count a request by its estimated seats."""
        if seats == 1:
            self.narrow += 1
        else:
            observe(SEATS, self.wide, seats)

    def observe_watches(self, watches: int) -> None:
        """Count a write by the number of watches to notify, at least one."""
        observe(WATCHES, self.watches, watches)

    def watched(self, seconds: float) -> None:
        """Count a watch by the seconds for which it held its seat."""
        observe(DURATIONS, self.watch, seconds)

    def waited_for(self, seconds: float, *, queued: bool) -> None:
        """Count a request by its waiting time in a queue, or, if not `queued`, until it was refused."""
        observe(DURATIONS, self.waited if queued else self.without_queue, seconds)

    # Derived values

    @property
    def dispatched(self) -> int:
        """Number of requests that were dispatched."""
        return self.at_once + self.unqueued + round(sum(self.waited[:-1])) - self.in_vain

    def seat_series(self) -> list[float]:
        """Return the histogram of estimated seats."""
        return _with(self.wide, 0, self.narrow, self.narrow)

    def length_series(self) -> list[float]:
        """Return the histogram of queue lengths; a request that was dispatched at once was alone in its queue."""
        return _with(self.lengths, 1, self.at_once, self.at_once)

    def wait_series(self) -> list[float]:
        """Return the histogram of waiting times of requests that were not refused at once."""
        return _with(self.waited, 0, self.at_once + self.unqueued, 0)

    def watch_series(self) -> list[float]:
        """Return the histogram of watches notified per write."""
        return _with(self.watches, 0, self.unwatched, 0)

    @property
    def is_unused(self) -> bool:
        """True if no request is queued or executing."""
        return not (self.executing or self.executing_seats or self.queued)


def _with(series: list[float], bucket: int, more: int, by: int) -> list[float]:
    """Return a copy with `more` observations in a bucket, which add `by` to the sum."""
    copy = list(series)
    copy[bucket] += more
    copy[-1] += by
    return copy
