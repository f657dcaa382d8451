"""Work counted in calls, including comparisons of texts, so that results do not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from steersman.work.no_collections import no_collections

SIZES = (16, 32, 64)
TOO_STEEP = 3.0
"""Largest ratio of the calls that the second and the first doubling add: 2 is linear, 4 is quadratic."""
NOTHING_MUCH = 400
"""Calls that the second doubling may add in any case."""


def calls(work: Callable[[], object]) -> int:
    """Count the calls of Python and C functions that `work` makes. Those of finalizers of other garbage do not count."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    with no_collections():
        sys.setprofile(see)
        try:
            work()
        finally:
            sys.setprofile(None)
    return count


def is_too_steep(counts: list[int]) -> bool:
    few, more, many = counts
    return many - more > NOTHING_MUCH and many - more > TOO_STEEP * (more - few)


def grows_too_fast(work: Callable[[int], Callable[[], object]], sizes: tuple[int, ...] = SIZES) -> list[int]:
    """Return the numbers of calls for each size if they grow faster than the sizes, otherwise an empty list."""
    work(1)()  # imports, and what is made once
    counts = [calls(work(size)) for size in sizes]
    return counts if is_too_steep(counts) else []


class Text(str):
    """Text whose comparisons are calls that a profiler sees, also those of a search through a list."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def with_texts(value: Any) -> Any:
    """Replace every text in `value` by a Text and return the value, which is changed in place. Structs keep their type."""
    if type(value) is str:
        return Text(value)
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            setattr(value, name, with_texts(getattr(value, name)))
    elif isinstance(value, list):
        value[:] = [with_texts(item) for item in value]
    elif isinstance(value, dict):
        return {with_texts(key): with_texts(item) for key, item in value.items()}
    return value
