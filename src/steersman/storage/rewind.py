"""A sorted range as it was at an older revision, from what it is now and what has to be undone."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from steersman.storage.keys import prefix_end

if TYPE_CHECKING:
    from sortedcontainers import SortedList

V = TypeVar("V")


def bounds(prefix: str, start: str) -> tuple[str, str | None]:
    """The first key that can be in the range, and the first beyond it (None: no end)."""
    return max(prefix, start), prefix_end(prefix)


def present_range(
    keys: SortedList, values: Mapping[str, V], prefix: str, start: str, limit: int
) -> tuple[list[V], bool]:
    """At most `limit` (0: all) values under `prefix` from `start` on, in key order, and whether more follow."""
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
    """As `present_range`, with `undone` in place of what the keys in it hold now (None: did not exist)."""
    low, high = bounds(prefix, start)
    # What returns is merged into the walk over what is there now; both are sorted.
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
    """How many keys there are under `prefix` from `start` on."""
    low, high = bounds(prefix, start)
    end: int = len(keys) if high is None else keys.bisect_left(high)
    return end - int(keys.bisect_left(low))


def past_count(
    keys: SortedList, values: Container[str], undone: Mapping[str, V | None], prefix: str, start: str
) -> int:
    """As `present_count`, with `undone` in place of what the keys in it hold now."""
    low, high = bounds(prefix, start)
    changed = (key for key in undone if key >= low and (high is None or key < high))
    returned = sum((undone[key] is not None) - (key in values) for key in changed)
    return present_count(keys, prefix, start) + returned
