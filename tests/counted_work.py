"""Work counted in calls, those that compare texts among them, so that nothing depends on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

SIZES = (16, 32, 64)
TOO_STEEP = 3.0
"""How many times more the second doubling may add than the first: 2 is linear, 4 is quadratic."""
NOTHING_MUCH = 400
"""Calls that the second doubling may add whatever the first did."""


def calls(work: Callable[[], object]) -> int:
    """How many calls `work` makes, of Python's functions and of C's."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

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
    """The counts of what `work` makes for each size, if they grow faster than the sizes; nothing otherwise."""
    work(1)()  # imports, and what is made once
    counts = [calls(work(size)) for size in sizes]
    return counts if is_too_steep(counts) else []


class Text(str):
    """A text whose comparisons are calls, which a profiler sees, also those that a search through a list makes."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def with_texts(value: Any) -> Any:
    """`value`, which is changed, with a Text for every text in it. Structs stay what they are."""
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
