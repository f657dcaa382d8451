"""Regular expressions of CEL: RE2, which takes time linear in the text whatever the expression."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2

from steersman.cel.pattern_size import too_large_to_compile, too_large_to_read
from steersman.cel.runtime_cost import matching_cost
from steersman.cel.values import EvaluationError, TextList
from steersman.cel.work import afford, spend, spend_on_text
from steersman.work.offloading import ensure_offloaded

_MAX_MEMORY = 8 * 1024 * 1024
_STEPS_OF_A_MATCH: Final = 8
_LONGEST_KEPT: Final = 4096
"""Characters of an expression of which many stay compiled; of longer ones few do."""


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
"""Where Go has other words for what is wrong."""


class PatternError(ValueError):
    """The text is no regular expression; the message has the form of Go's."""


_ESCAPE: Final = re.compile(r"\\(?:Q(?s:.*?)(?:\\E|\Z)|(?s:.))")


def _refuse_bytes(pattern: Any) -> None:
    """Raises PatternError for one byte of any text, which RE2 knows and Go does not."""
    if "\\C" in pattern and any(found[0] == "\\C" for found in _ESCAPE.finditer(pattern)):
        raise _refused("invalid escape sequence", "\\C")


def _refused(reason: str, what: str) -> PatternError:
    return PatternError(f"error parsing regexp: {reason}: `{what}`")


def compiled(pattern: str) -> Any:
    """Return a compiled expression, kept for the next use. Raises PatternError.

    Work on the event loop ends (`ensure_offloaded`) where it is not compiled yet.
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
    """The same for the few expressions of flags, whoever waits meanwhile. Raises PatternError."""
    if wrong := too_large_to_compile(pattern):
        raise _refused(wrong, pattern)
    _refuse_bytes(pattern)
    return _compiled_anew(pattern)


def _compiled_anew(pattern: str) -> Any:
    """Raises PatternError, RE2's in Go's words."""
    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        text = error.args[0]
        detail = text.decode() if isinstance(text, bytes) else str(text)
        reason, _, what = detail.partition(": ")
        raise _refused(_GO_REASONS.get(reason, reason), what) from None


def check_pattern(pattern: str) -> None:
    """Raises PatternError for what is no regular expression.

    It is only read: what it would be compiled to may take 50 ms, and more memory than there is for one.
    """
    if wrong := too_large_to_read(pattern):
        raise _refused(wrong, pattern)
    _refuse_bytes(pattern)
    try:
        re2.Set.SearchSet(_options()).Add(pattern)
    except re2.error:  # which does not say why
        _compiled_anew(pattern)


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    return options


def matches(text: Any, pattern: Any) -> bool:
    """Whether the expression is found anywhere in the text."""
    try:
        found = compiled(pattern)
    except PatternError as error:
        raise EvaluationError(str(error)) from None
    _spend_on_search(text, pattern)
    return found.search(text) is not None


def find(text: Any, pattern: Any) -> str:
    """The first place where the expression matches; empty if there is none."""
    compiled_pattern = _compiled(pattern)
    _spend_on_search(text, pattern)
    found = compiled_pattern.search(text)
    return "" if found is None else str(found.group())


def find_all(text: Any, pattern: Any, limit: int = -1) -> TextList:
    """All places where the expression matches, at most `limit` if it is not negative."""
    found = TextList()
    if limit == 0:
        return found
    compiled_pattern = _compiled(pattern)
    _spend_on_search(text, pattern)
    previous = -1
    for match in compiled_pattern.finditer(text):
        spend(_STEPS_OF_A_MATCH)
        if match.start() == match.end() == previous:
            # Go does not count an empty match right behind another one.
            continue
        previous = match.end()
        found.append(str(match.group()))
        if len(found) == limit:
            break
    return found


def _spend_on_search(text: Any, pattern: Any) -> None:
    """To be called before a search, which may take as long as there are characters in the text times the pattern, in
    one piece: what costs too much is not begun. Raises CostLimitExceeded."""
    afford(matching_cost(text, pattern))
    spend_on_text(len(text))


def _compiled(pattern: Any) -> Any:
    try:
        return compiled(pattern)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None
