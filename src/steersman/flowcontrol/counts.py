"""What is counted of the requests of one flow schema at one priority level.

Most requests take one seat and find it at once; of these only numbers are counted, out of which the histograms are
made when somebody asks for them.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

DURATIONS: Final = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
"""Seconds."""
LENGTHS: Final = (0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)
SEATS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
WATCHES: Final = (0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0)


def empty(buckets: tuple[float, ...]) -> list[float]:
    """A series: how often each bucket, how often none of them, and the sum."""
    return [0.0] * (len(buckets) + 2)


def observe(buckets: tuple[float, ...], series: list[float], value: float) -> None:
    """Counts a value in."""
    series[bisect_left(buckets, value)] += 1
    series[-1] += value


class SchemaCounts:
    """See the module."""

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
        """Writes that no watch was told of."""
        self.executing = self.executing_seats = 0
        self.queued = self.queued_seats = 0
        self.unaccommodated = 0
        self.rejected: dict[str, int] = {}
        self.wide = empty(SEATS)
        self.lengths = empty(LENGTHS)
        self.waited = empty(DURATIONS)
        """How long those waited that a queue had room for, also those that have waited in vain."""
        self.in_vain = 0
        self.without_queue = empty(DURATIONS)
        """The same of those that were refused at once."""
        self.regular = empty(DURATIONS)
        """How long requests were worked on, but for watches."""
        self.watch = empty(DURATIONS)
        self.watches = empty(WATCHES)

    def joined(self, length: int) -> None:
        """A request has joined a queue that it makes so long."""
        observe(LENGTHS, self.lengths, length)

    def not_accommodated(self) -> None:
        """The next request was too wide for the seats that are free."""
        self.unaccommodated += 1

    def refused(self, reason: str) -> None:
        """A request was refused, or has waited in vain."""
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def estimated(self, seats: int) -> None:
        """A request was taken to need so many seats."""
        if seats == 1:
            self.narrow += 1
        else:
            observe(SEATS, self.wide, seats)

    def told(self, watches: int) -> None:
        """So many watches, one at least, were to be told of a write."""
        observe(WATCHES, self.watches, watches)

    def watched(self, seconds: float) -> None:
        """A watch had its seat for so long."""
        observe(DURATIONS, self.watch, seconds)

    def waited_for(self, seconds: float, *, queued: bool) -> None:
        """A request waited for so long in a queue, or was refused at once."""
        observe(DURATIONS, self.waited if queued else self.without_queue, seconds)

    # What they come to

    @property
    def dispatched(self) -> int:
        """Requests that were let in."""
        return self.at_once + self.unqueued + round(sum(self.waited[:-1])) - self.in_vain

    def seat_series(self) -> list[float]:
        """The seats that requests were taken to need."""
        return _with(self.wide, 0, self.narrow, self.narrow)

    def length_series(self) -> list[float]:
        """How long requests made their queues; those that were let in at once were alone in theirs."""
        return _with(self.lengths, 1, self.at_once, self.at_once)

    def wait_series(self) -> list[float]:
        """How long those waited that were not refused at once."""
        return _with(self.waited, 0, self.at_once + self.unqueued, 0)

    def watch_series(self) -> list[float]:
        """How many watches were told of writes."""
        return _with(self.watches, 0, self.unwatched, 0)

    @property
    def is_unused(self) -> bool:
        """Whether nothing of it is under way."""
        return not (self.executing or self.executing_seats or self.queued)


def _with(series: list[float], bucket: int, more: int, by: int) -> list[float]:
    """A copy with `more` observations in a bucket, which come to `by`."""
    copy = list(series)
    copy[bucket] += more
    copy[-1] += by
    return copy
