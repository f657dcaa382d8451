"""RE2 patterns of strings, which may match anywhere in the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from steersman.cel.pattern_size import too_large_to_compile
from steersman.work.offloading import ensure_offloaded, expect_offloading

_MEMORY: Final = 1 << 20
_REMEMBERED: Final = 512
"""The most compiled patterns in the cache: some 10 KB each, up to `_MEMORY` for malicious ones."""
_LONGEST_KEPT: Final = 4096
"""Characters of the longest pattern in that cache; longer ones are in the small cache."""
_MUCH_MEMORY: Final = 8 << 20
_FEW_REMEMBERED: Final = 32
"""Memory of a pattern, and the most patterns, in the small cache of patterns that need much memory."""

# re2 and cel.regular are imported when a schema first has a pattern


def matches(pattern: str, text: str) -> bool:
    """Return True if the pattern is found in the text.

    Raises ValueError with Go's message for a malformed pattern.
    """
    expect_offloading()
    find = (len(pattern) <= _LONGEST_KEPT and _finder(pattern)) or _large_finder(pattern)
    if find(text):
        return True
    # nearly always there is no match, but the fast way also finds none if its memory does not suffice
    from steersman.cel.regular import compiled

    match: Any = compiled(pattern).search(text.encode())
    return match is not None


def pattern_error(pattern: str) -> str:
    """Return Go's message for a malformed pattern, "" for a valid one."""
    from steersman.cel.regular import PatternError, check_pattern

    try:
        check_pattern(pattern)
    except PatternError as error:
        return str(error)
    return ""


@lru_cache(maxsize=_REMEMBERED)
def _finder(pattern: str) -> Callable[[str], Any] | None:
    """Return a function that finds the pattern without its position, which is ten times faster.

    Returns None if the pattern needs too much memory for this cache.
    """
    ensure_offloaded()
    return _nothing if too_large_to_compile(pattern) else _compiled(pattern, _MEMORY)


@lru_cache(maxsize=_FEW_REMEMBERED)
def _large_finder(pattern: str) -> Callable[[str], Any]:
    """Return a function that finds a pattern that needs much memory."""
    ensure_offloaded()
    return _nothing if too_large_to_compile(pattern) else _compiled(pattern, _MUCH_MEMORY) or _nothing


def _compiled(pattern: str, memory: int) -> Callable[[str], Any] | None:
    """Return a function that finds the pattern, None if it is malformed or needs more memory."""
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
    """Find nothing, so that `matches` tries the slow way, which raises the error."""
