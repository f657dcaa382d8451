"""Estimates of a request's seats, and of its effects after the answer (k8s.io/apiserver `util/flowcontrol/request`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.api.meta.v1 import ListOptions

MOST_LIST_SEATS: Final = 100
MOST_MUTATING_SEATS: Final = 10
BYTES_PER_SEAT: Final = 100_000
STREAMED_BYTES: Final = 1_000_000
"""Estimated bytes that a list from the cache keeps in memory at once."""
LARGEST_OBJECT: Final = 1_500_000
"""Assumed bytes of an object of unknown size."""
WATCHES_PER_SEAT: Final = 10
EVENT_SECONDS: Final = 0.005
"""Seconds for which notifying ten watches of a write occupies a seat."""


class Estimate(NamedTuple):
    """Seats during execution, and seats for `linger` seconds after the answer."""

    initial: int = 1
    final: int = 0
    linger: float = 0.0


ONE_SEAT: Final = Estimate()


class Stored(NamedTuple):
    """Number of a resource's stored objects, and their average size in bytes."""

    objects: int
    average: float


def most_seats(nominal: int, hand: int) -> int:
    """Return the limit of seats of one request at a level with queues: 15% of the level's own, and its share of a
    hand.
    """
    return max(1, min(math.ceil(nominal * 0.15), nominal // hand))


def estimate_list(
    options: ListOptions | None,
    stored: Callable[[], Stored | None],
    level_most: int,
    *,
    is_watch: bool,
    is_of_one: bool,
    has_selector: bool = False,
) -> Estimate:
    """Return the estimate for a list, or for the initial objects of a watch.

    `options` are None if the query is malformed: the request gets the most seats and is refused later. `stored` returns
    None for a resource of other servers. `level_most` is the level's limit of seats of one request, 0 for none.
    `is_of_one` is True if a name is selected.
    """
    most = min(level_most, MOST_LIST_SEATS) if level_most else MOST_LIST_SEATS
    if options is None:
        return Estimate(most)
    if is_watch and not _has_initial_events(options):
        return ONE_SEAT
    counts = stored()
    if counts is None:
        return ONE_SEAT
    from_cache = is_watch or _is_from_cache(options)
    average = counts.average if counts.average > 0 or not counts.objects else LARGEST_OBJECT
    objects = min(options.limit, counts.objects) if options.limit > 0 else counts.objects
    if is_of_one:
        objects = 1
    elif not from_cache and has_selector:
        objects = max(objects, counts.objects // 2)
    held = objects * math.floor(average)
    if from_cache:
        held = min(held, STREAMED_BYTES)
    return Estimate(max(1, min(math.ceil(held / BYTES_PER_SEAT), most)))


def _has_initial_events(options: ListOptions) -> bool:
    """Return True if a watch begins with initial events: by `sendInitialEvents`, or by the old convention."""
    return options.send_initial_events is True or options.resource_version in ("", "0")


def _is_from_cache(options: ListOptions) -> bool:
    """Return True if upstream answers the list from its cache, which has only the present state."""
    if options.resource_version_match:
        return options.resource_version_match == "NotOlderThan"
    if options.continue_:
        return False
    return options.resource_version in ("", "0") or options.limit <= 0


def estimate_write(watches: int, level_most: int) -> Estimate:
    """Return the estimate for a write: notifying ten or more watches occupies seats after the answer."""
    if watches < WATCHES_PER_SEAT:
        return ONE_SEAT
    most = min(level_most, MOST_MUTATING_SEATS) if level_most else MOST_MUTATING_SEATS
    seats = math.ceil(watches / WATCHES_PER_SEAT)
    final = min(seats, most)
    return Estimate(1, final, seats * EVENT_SECONDS / final)
