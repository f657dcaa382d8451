"""Arithmetic of the shell (`$((...))`), and durations of `sleep`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from steersman.work.patterns import late_pattern

_TOKEN: Final = late_pattern(
    r"\s*([0-9]{1,18}|\$?\{?[A-Za-z_][A-Za-z0-9_]*\}?|==|!=|<=|>=|&&|\|\||[-+*/%()<>])", re.ASCII
)
_LEVELS: Final = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"))
_MOST_TOKENS: Final = 200
_MOST_DEPTH: Final = 20
_WRAP: Final = 1 << 64
_SECONDS: Final = late_pattern(r"([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})([smhd]?)", re.ASCII)
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


_LEAST_SECONDS: Final = 0.001
"""Shortest duration of a `sleep` that is not zero."""
_MOST_SECONDS: Final = 1e10
"""About 300 years; a longer `sleep` lasts for ever."""


def seconds_of(words: list[str]) -> float | None:
    """Return the sum of the durations given to `sleep`, in seconds; None if there are none, or for an invalid one."""
    total = 0.0
    for word in words:
        if word in ("infinity", "inf"):
            return float("inf")
        match = _SECONDS.fullmatch(word)
        if match is None:
            return None
        total += float(match[1]) * _UNITS[match[2]]
    if total > _MOST_SECONDS:
        return float("inf")
    return (max(total, _LEAST_SECONDS) if total else 0.0) if words else None


def arithmetic(expression: str, variables: Mapping[str, str]) -> int:
    """Return the value of an expression; 0 for an invalid one."""
    tokens: list[str] = []
    at = 0
    expression = expression.rstrip(" \t\r\n")
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None or len(tokens) >= _MOST_TOKENS:
            return 0
        tokens.append(match[1])
        at = match.end()
    try:
        return _Reader(tokens, variables).value()
    except (IndexError, ZeroDivisionError, ValueError, RecursionError):
        return 0


class _Reader:
    def __init__(self, tokens: list[str], variables: Mapping[str, str]) -> None:
        self._tokens = tokens
        self._variables = variables
        self._at = 0
        self._depth = 0

    def value(self, level: int = 0) -> int:
        """Parse an expression and return its value.

        Raises ValueError, IndexError or ZeroDivisionError for an invalid one.
        """
        if level == len(_LEVELS):
            return self._single()
        left = self.value(level + 1)
        while self._at < len(self._tokens) and self._tokens[self._at] in _LEVELS[level]:
            operator = self._tokens[self._at]
            self._at += 1
            left = _wrapped(_applied(operator, left, self.value(level + 1)))
        return left

    def _single(self) -> int:
        token = self._tokens[self._at]
        self._at += 1
        if token in ("-", "+"):
            return -self._single() if token == "-" else self._single()
        if token == "(":
            self._depth += 1
            if self._depth > _MOST_DEPTH:
                raise ValueError("nested too deeply")
            inner = self.value()
            if self._tokens[self._at] != ")":
                raise ValueError("no closing parenthesis")
            self._at += 1
            return inner
        if token[0] in "0123456789":
            return int(token)
        text = self._variables.get(token.strip("${}"), "") or "0"
        return int(text[:19])


def _applied(operator: str, left: int, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/" | "%":
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if operator == "/" else left - quotient * right
        case "&&":
            return int(bool(left) and bool(right))
        case "||":
            return int(bool(left) or bool(right))
    return int(
        {
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
            "<=": left <= right,
            ">=": left >= right,
        }[operator]
    )


def _wrapped(value: int) -> int:
    """Return a number wrapped around to 64 bits."""
    value &= _WRAP - 1
    return value - _WRAP if value >= _WRAP >> 1 else value
