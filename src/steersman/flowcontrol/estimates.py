"""How many seats a request takes, and for how long after its answer (k8s.io/apiserver `util/flowcontrol/request`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from steersman.api.meta.v1 import ListOptions

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


def most_seats(nominal: int, hand: int) -> int:
    """The most seats that one request may take of a level that queues: 15% of its own, and one hand of them."""
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
    """Estimate a list, or the objects that a watch begins with.

    `options` are None where the query cannot be read: that request takes the most seats and is refused later. `stored`
    gives None for a resource of other servers. `level_most` is the most seats of a request of its level, 0 for no such
    bound; `is_of_one` tells whether a name is selected.
    """
    most = min(level_most, MOST_LIST_SEATS) if level_most else MOST_LIST_SEATS
    if options is None:
        return Estimate(most)
    if is_watch and not _has_initial_events(options):
        return ONE_SEAT
    found = stored()
    if found is None:
        return ONE_SEAT
    from_cache = is_watch or _is_from_cache(options)
    average = found.average if found.average > 0 or not found.objects else LARGEST_OBJECT
    objects = min(options.limit, found.objects) if options.limit > 0 else found.objects
    if is_of_one:
        objects = 1
    elif not from_cache and has_selector:
        objects = max(objects, found.objects // 2)
    held = objects * math.floor(average)
    if from_cache:
        held = min(held, STREAMED_BYTES)
    return Estimate(max(1, min(math.ceil(held / BYTES_PER_SEAT), most)))


def _has_initial_events(options: ListOptions) -> bool:
    """`sendInitialEvents`, or the old way of asking for all objects first."""
    return options.send_initial_events is True or options.resource_version in ("", "0")


def _is_from_cache(options: ListOptions) -> bool:
    """Whether upstream answers it from its cache, which holds the present alone."""
    if options.resource_version_match:
        return options.resource_version_match == "NotOlderThan"
    if options.continue_:
        return False
    return options.resource_version in ("", "0") or options.limit <= 0


def estimate_write(watches: int, level_most: int) -> Estimate:
    """A write that so many watches are told of: that takes seats after the answer, from ten watches on."""
    if watches < WATCHES_PER_SEAT:
        return ONE_SEAT
    most = min(level_most, MOST_MUTATING_SEATS) if level_most else MOST_MUTATING_SEATS
    wanted = math.ceil(watches / WATCHES_PER_SEAT)
    final = min(wanted, most)
    return Estimate(1, final, wanted * EVENT_SECONDS / final)
