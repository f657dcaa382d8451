"""Regular expressions of CEL. RE2 takes time linear in the text for every expression."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from steersman.cel.pattern_size import too_large_to_compile, too_large_to_read
from steersman.cel.values import EvaluationError, TextList
from steersman.cel.work import afford, spend, spend_on_text
from steersman.work.offloading import ensure_offloaded
from steersman.work.patterns import late_pattern

_MAX_MEMORY = 8 * 1024 * 1024
_STEPS_OF_A_MATCH: Final = 8
_LONGEST_KEPT: Final = 4096
"""The most characters of an expression in the large cache of compiled ones; longer ones have a small cache."""


_GO_REASONS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""Go's texts of errors where they differ from RE2's."""


class PatternError(ValueError):
    """The text is not a regular expression; the message has Go's format."""


_ESCAPE: Final = late_pattern(r"\\(?:Q(?s:.*?)(?:\\E|\Z)|(?s:.))")


def _refuse_bytes(pattern: Any) -> None:
    r"""Check that `\C` is not used, which is a single byte in RE2 and unknown to Go. Raises PatternError."""
    if "\\C" in pattern and any(found[0] == "\\C" for found in _ESCAPE.finditer(pattern)):
        raise _refused("invalid escape sequence", "\\C")


def _refused(reason: str, what: str) -> PatternError:
    return PatternError(f"error parsing regexp: {reason}: `{what}`")


def compiled(pattern: str) -> Any:
    """Return a compiled expression, which is cached. Raises PatternError.

    On the event loop, the work is moved to a thread (`ensure_offloaded`) if the expression is not compiled yet.
    """
    return compile_pattern(pattern) if len(pattern) <= _LONGEST_KEPT else compile_long_pattern(pattern)


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Any:
    """Compile a short expression, see `compiled`."""
    ensure_offloaded()
    return compiled_at_once(pattern)


@lru_cache(maxsize=8)
def compile_long_pattern(pattern: str) -> Any:
    """Compile a long expression, see `compiled`."""
    ensure_offloaded()
    return compiled_at_once(pattern)


def compiled_at_once(pattern: str) -> Any:
    """Compile an expression of a flag even if that blocks the event loop. There are only a few. Raises PatternError."""
    if wrong := too_large_to_compile(pattern):
        raise _refused(wrong, pattern)
    _refuse_bytes(pattern)
    return _compiled_anew(pattern)


def _compiled_anew(pattern: str) -> Any:
    """Compile an expression. Raises PatternError with Go's text of RE2's error."""
    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        text = error.args[0]
        detail = text.decode() if isinstance(text, bytes) else str(text)
        reason, _, what = detail.partition(": ")
        raise _refused(_GO_REASONS.get(reason, reason), what) from None


def check_pattern(pattern: str) -> None:
    """Check that a text is a regular expression. Raises PatternError.

    It is only parsed, because compiling may take 50 ms, and more memory than a single expression may have.
    """
    if wrong := too_large_to_read(pattern):
        raise _refused(wrong, pattern)
    _refuse_bytes(pattern)
    try:
        re2.Set.SearchSet(_options()).Add(pattern)
    except re2.error:  # the error has no reason
        _compiled_anew(pattern)


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    return options


def matches(text: Any, pattern: Any) -> bool:
    """Return True if the expression matches anywhere in the text."""
    try:
        found = compiled(pattern)
    except PatternError as error:
        raise EvaluationError(str(error)) from None
    _spend_on_search(text, pattern)
    return found.search(text) is not None


def find(text: Any, pattern: Any) -> str:
    """Return the first match of the expression, empty if there is none."""
    compiled_pattern = _compiled(pattern)
    _spend_on_search(text, pattern)
    match = compiled_pattern.search(text)
    return "" if match is None else str(match.group())


def find_all(text: Any, pattern: Any, limit: int = -1) -> TextList:
    """Return all matches of the expression, at most `limit` if that is not negative."""
    found = TextList()
    if limit == 0:
        return found
    compiled_pattern = _compiled(pattern)
    _spend_on_search(text, pattern)
    previous = -1
    for match in compiled_pattern.finditer(text):
        spend(_STEPS_OF_A_MATCH)
        if match.start() == match.end() == previous:
            # Go does not count an empty match directly after another match.
            continue
        previous = match.end()
        found.append(str(match.group()))
        if len(found) == limit:
            break
    return found


def _spend_on_search(text: Any, pattern: Any) -> None:
    """Charge the steps of a search before it starts. Its time may be proportional to the length of the text times that
    of the pattern, without interruption, so a search that costs too much is not started. Raises CostLimitExceeded.
    """
    from steersman.cel.runtime_cost import (
        matching_cost,  # the types of expressions, which patterns of schemas do not need
    )

    afford(matching_cost(text, pattern))
    spend_on_text(len(text))


def _compiled(pattern: Any) -> Any:
    try:
        return compiled(pattern)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None
