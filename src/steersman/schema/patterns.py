"""Patterns of texts: RE2, found anywhere in the text."""

from __future__ import annotations

from typing import Any


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text. Raises ValueError with Go's message for what is no pattern."""
    found: Any = _compile(pattern).search(text)
    return found is not None


def pattern_error(pattern: str) -> str:
    """What is wrong with a pattern, in Go's words; "" if it is one."""
    from steersman.cel.regular import PatternError, check_pattern

    try:
        check_pattern(pattern)
    except PatternError as error:
        return str(error)
    return ""


def _compile(pattern: str) -> Any:
    """Remembers the patterns that were used last: a compiled one takes some 10 KB."""
    global _compile
    from steersman.cel.regular import compile_pattern  # imported when a schema first has a pattern

    _compile = compile_pattern
    return compile_pattern(pattern)
