"""How many seats a request takes, and for how long after its answer (k8s.io/apiserver `util/flowcontrol/request`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.machinery.errors.go_numbers import parse_int

MOST_LIST_SEATS: Final = 100
MOST_MUTATING_SEATS: Final = 10
BYTES_PER_SEAT: Final = 100_000
STREAMED_BYTES: Final = 1_000_000
"""What a list from the cache is taken to hold at once."""
LARGEST_OBJECT: Final = 1_500_000
"""Bytes of an object of which no size is known."""
WATCHES_PER_SEAT: Final = 10
EVENT_SECONDS: Final = 0.005
"""For how long telling ten watches of a write takes a seat."""


class Estimate(NamedTuple):
    """Seats while the request is worked on, and those that it takes for `linger` seconds after its answer."""

    initial: int = 1
    final: int = 0
    linger: float = 0.0


ONE_SEAT: Final = Estimate()


class Stored(NamedTuple):
    """How many objects of a resource are stored, and how many bytes one has on average."""

    objects: int
    average: float


class ListQuery(NamedTuple):
    """What of a list's or a watch's query counts, as it was sent, "" for what was not."""

    limit: str = ""
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    send_initial_events: bool = False
    timeout_seconds: str = ""
    has_selector: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether its numbers are some."""
        try:
            parse_int(self.limit or "0")
            parse_int(self.timeout_seconds or "0")
        except ValueError:
            return False
        return True


def most_seats(nominal: int, hand: int) -> int:
    """The most seats that one request may take of a level that queues: 15% of its own, and one hand of them."""
    return max(1, min(math.ceil(nominal * 0.15), nominal // hand))


def estimate_list(
    query: ListQuery, stored: Callable[[], Stored | None], level_most: int, *, is_watch: bool, is_of_one: bool
) -> Estimate:  # fmt: skip
    """A list, or the objects that a watch begins with. `stored` gives None for a resource of other servers.

    `level_most` is the most seats of a request of its level, 0 for no such bound; `is_of_one` tells whether a name is
    selected.
    """
    most = min(level_most, MOST_LIST_SEATS) if level_most else MOST_LIST_SEATS
    if not query.is_readable:
        return Estimate(most)
    if is_watch and not _has_initial_events(query):
        return ONE_SEAT
    found = stored()
    if found is None:
        return ONE_SEAT
    from_cache = is_watch or _is_from_cache(query)
    seats = math.ceil(_bytes_at_once(query, found, from_cache=from_cache, is_of_one=is_of_one) / BYTES_PER_SEAT)
    return Estimate(max(1, min(seats, most)))


def _has_initial_events(query: ListQuery) -> bool:
    """`sendInitialEvents`, or the old way of asking for all objects first."""
    return query.send_initial_events or query.resource_version in ("", "0")


def _is_from_cache(query: ListQuery) -> bool:
    """Whether upstream answers it from its cache, which holds the present alone."""
    if query.resource_version_match:
        return query.resource_version_match == "NotOlderThan"
    if query.continue_token:
        return False
    exact = query.resource_version not in ("", "0") and parse_int(query.limit or "0") > 0
    return not exact


def _bytes_at_once(query: ListQuery, stored: Stored, *, from_cache: bool, is_of_one: bool) -> float:
    average = stored.average if stored.average > 0 or not stored.objects else LARGEST_OBJECT
    limit = parse_int(query.limit or "0")
    objects = min(limit, stored.objects) if limit > 0 else stored.objects
    if is_of_one:
        objects = 1
    elif not from_cache and query.has_selector:
        objects = max(objects, stored.objects // 2)
    held = objects * math.floor(average)
    return min(held, STREAMED_BYTES) if from_cache else held


def estimate_write(watches: int, level_most: int) -> Estimate:
    """A write that so many watches are told of: that takes seats after the answer, from ten watches on."""
    if watches < WATCHES_PER_SEAT:
        return ONE_SEAT
    most = min(level_most, MOST_MUTATING_SEATS) if level_most else MOST_MUTATING_SEATS
    wanted = math.ceil(watches / WATCHES_PER_SEAT)
    final = min(wanted, most)
    return Estimate(1, final, wanted * EVENT_SECONDS / final)
