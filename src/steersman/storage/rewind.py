"""Sorted ranges at an older revision, computed from the present range and the events to be undone."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from steersman.storage.keys import prefix_end

if TYPE_CHECKING:
    from sortedcontainers import SortedList

V = TypeVar("V")


def bounds(prefix: str, start: str) -> tuple[str, str | None]:
    """Return the first possible key of the range, and the first key beyond it (None: no end)."""
    return max(prefix, start), prefix_end(prefix)


def present_range(
    keys: SortedList, values: Mapping[str, V], prefix: str, start: str, limit: int
) -> tuple[list[V], bool]:
    """Return at most `limit` (0: all) values under `prefix` from `start` on, in key order, and True if more follow."""
    low, high = bounds(prefix, start)
    found: list[V] = []
    for key in keys.irange(low, high, inclusive=(True, False)):
        if limit and len(found) == limit:
            return found, True
        found.append(values[key])
    return found, False


def past_range(
    keys: SortedList, values: Mapping[str, V], undone: Mapping[str, V | None], prefix: str, start: str, limit: int
) -> tuple[list[V], bool]:
    """Return a range like `present_range`, with the values in `undone` instead of present ones (None: did not exist)."""
    low, high = bounds(prefix, start)
    # The undone keys are merged into the walk over the present keys; both are sorted.
    changed: Sequence[str] = sorted(key for key in undone if key >= low and (high is None or key < high))
    position = 0
    found: list[V] = []
    for key in keys.irange(low, high, inclusive=(True, False)):
        while position < len(changed) and changed[position] < key:
            value = undone[changed[position]]
            position += 1
            if value is not None:
                found.append(value)
        if position < len(changed) and changed[position] == key:
            value = undone[key]
            position += 1
        else:
            value = values[key]
        if value is not None:
            found.append(value)
        if limit and len(found) > limit:
            return found[:limit], True
    found.extend(value for key in changed[position:] if (value := undone[key]) is not None)
    if limit and len(found) > limit:
        return found[:limit], True
    return found, False


def present_count(keys: SortedList, prefix: str, start: str) -> int:
    """Return the number of keys under `prefix` from `start` on."""
    low, high = bounds(prefix, start)
    end: int = len(keys) if high is None else keys.bisect_left(high)
    return end - int(keys.bisect_left(low))


def past_count(
    keys: SortedList, values: Container[str], undone: Mapping[str, V | None], prefix: str, start: str
) -> int:
    """Return the number of keys like `present_count`, with the values in `undone` instead of present ones."""
    low, high = bounds(prefix, start)
    changed = (key for key in undone if key >= low and (high is None or key < high))
    returned = sum((undone[key] is not None) - (key in values) for key in changed)
    return present_count(keys, prefix, start) + returned
