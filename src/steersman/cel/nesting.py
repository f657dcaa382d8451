"""Room for expressions that are nested deeper than Python's own limit on calls has it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_FRAMES: Final = 20_000
"""Calls within calls that the deepest expression the parser lets through takes, and as many again."""


def allows_nesting(function: Callable[P, R]) -> Callable[P, R]:
    """Calls the function once more with a higher limit if it runs into Python's.

    The limit also guards C's stack, which decoders of JSON use, so it is only raised for the time of the call. Calls of
    Python functions by each other do not use that stack.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            before = sys.getrecursionlimit()
            if before >= _FRAMES:
                raise
        sys.setrecursionlimit(_FRAMES)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setrecursionlimit(before)

    return call
