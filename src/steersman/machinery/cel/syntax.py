"""What is wrong with a text that does not follow the grammar."""

from __future__ import annotations

from collections.abc import Callable

from steersman.machinery.cel.lexer import Token


def explain(text: str, tokens: list[Token], max_depth: int, report: Callable[[int, str], None]) -> None:
    """Reports the errors."""
    report(0, "Syntax error: TODO")
