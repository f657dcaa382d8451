"""Patterns of texts: RE2, found anywhere in the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from steersman.cel.pattern_size import too_large_to_compile
from steersman.work.offloading import ensure_offloaded, expect_offloading

_MEMORY: Final = 1 << 20
_REMEMBERED: Final = 512
"""Patterns that stay compiled, which takes some 10 KB each; as much as `_MEMORY` where texts are made for that."""
_LONGEST_KEPT: Final = 4096
"""Characters of those; longer ones are among the few."""
_MUCH_MEMORY: Final = 8 << 20
_FEW_REMEMBERED: Final = 32
"""The same of those that need more."""

# re2 and cel.regular are imported when a schema first has a pattern


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text.

    Raises ValueError with Go's message for what is no pattern.
    """
    expect_offloading()
    find = (len(pattern) <= _LONGEST_KEPT and _finder(pattern)) or _large_finder(pattern)
    if find(text):
        return True
    # nearly always so, but nothing is found either where there was not enough memory to go the fast way
    from steersman.cel.regular import compiled

    found: Any = compiled(pattern).search(text.encode())
    return found is not None


def pattern_error(pattern: str) -> str:
    """What is wrong with a pattern, in Go's words; "" if it is one."""
    from steersman.cel.regular import PatternError, check_pattern

    try:
        check_pattern(pattern)
    except PatternError as error:
        return str(error)
    return ""


@lru_cache(maxsize=_REMEMBERED)
def _finder(pattern: str) -> Callable[[str], Any] | None:
    """What finds a pattern without telling where, ten times faster than what tells it; None if it needs much memory."""
    ensure_offloaded()
    return _nothing if too_large_to_compile(pattern) else _compiled(pattern, _MEMORY)


@lru_cache(maxsize=_FEW_REMEMBERED)
def _large_finder(pattern: str) -> Callable[[str], Any]:
    """What finds one that needs much memory."""
    ensure_offloaded()
    return _nothing if too_large_to_compile(pattern) else _compiled(pattern, _MUCH_MEMORY) or _nothing


def _compiled(pattern: str, memory: int) -> Callable[[str], Any] | None:
    """None for what is no pattern, or needs more memory."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    finder = re2.Set.SearchSet(options)
    try:
        finder.Add(pattern)
        finder.Compile()
    except re2.error:
        return None
    match: Callable[[str], Any] = finder.Match
    return match


def _nothing(text: str) -> None:
    """Finds nothing in any text, for `matches` to find out why."""
