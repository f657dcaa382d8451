"""Functions that note the arguments of their calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def noted(function: Callable[P, T], note: Callable[P, object]) -> Callable[P, T]:
    """Return a function that calls `note`, and returns the result of `function`, with the same arguments."""

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        note(*args, **kwargs)
        return function(*args, **kwargs)

    return call
