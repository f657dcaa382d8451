"""Support for expressions that are nested more deeply than Python's recursion limit permits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from threading import local
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_FRAMES: Final = 20_000
"""Twice the depth of calls for the most deeply nested expression that the parser accepts."""


class _Here(local):
    """Thread-local state that tells whether the thread is in such a call."""

    is_within: bool = False


_here: Final = _Here()


def allows_nesting(function: Callable[P, R]) -> Callable[P, R]:
    """Retry the function with a higher recursion limit after a RecursionError.

    The limit also protects the C stack, which JSON decoders use, so it is only raised during the call. Python functions
    that call each other do not use that stack. Nested calls are not retried, because a chain of them would otherwise
    take as many attempts as it is long.
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
