"""Room for expressions that are nested deeper than Python's own limit on calls has it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from threading import local
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_FRAMES: Final = 20_000
"""Calls within calls that the deepest expression the parser lets through takes, and as many again."""


class _Here(local):
    """Whether this thread is within such a call."""

    is_within: bool = False


_here: Final = _Here()


def allows_nesting(function: Callable[P, R]) -> Callable[P, R]:
    """Calls the function once more with a higher limit if it runs into Python's.

    The limit also guards C's stack, which decoders of JSON use, so it is only raised for the time of the call. Calls of
    Python functions by each other do not use that stack. A call within such a call is made once: if each were made
    again, a chain of them would take as many attempts as it is long.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if _here.is_within:
            return function(*args, **kwargs)
        _here.is_within = True
        try:
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
        finally:
            _here.is_within = False

    return call
