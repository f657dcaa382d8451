"""Facts about an answered request, as a test gives them."""

from __future__ import annotations

from typing import Any


class Answer:
    """The facts of a trace (tracing.trace.Answered)."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.path: str = facts.get("path", "/")
        self._facts = facts

    def line(self) -> dict[str, Any]:
        return self._facts

    def span_facts(self) -> dict[str, Any]:
        return {}

    def of_filter(self, name: str) -> dict[str, Any]:
        return {}
