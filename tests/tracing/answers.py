"""Facts about an answered request, as a test gives them."""

from __future__ import annotations

from typing import Any

from steersman.tracing.trace import StepKind, Trace


class Answer:
    """The facts of a trace (tracing.trace.Answered)."""

    size = 0

    def __init__(self, facts: dict[str, Any]) -> None:
        self.id: str = facts.get("id", "")
        self.handler = StepKind("handler", stays_open=True)
        self._facts = facts

    def line(self, trace: Trace) -> dict[str, Any]:
        return self._facts

    def span_facts(self, trace: Trace) -> dict[str, Any]:
        return {}

    def of_filter(self, trace: Trace, name: str) -> dict[str, Any]:
        return {"filter": name}
