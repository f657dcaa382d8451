"""Expressions of CEL of ResourceUsage and Metric objects (kwok `pkg/kwok/metrics`).

Slow to import, as the expression compiler is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from steersman.api.core.v1 import Container, Node, Pod
from steersman.cel.environment import Overload
from steersman.cel.types import DOUBLE, DYN, STRING
from steersman.cel.values import EvaluationError
from steersman.nodes.stages.conditions import Condition, Conditions, Failed
from steersman.nodes.stages.declaration import StageError
from steersman.nodes.stages.typed_values import Fields, typed
from steersman.work.bounded_cache import BoundedCache

_MOST_PROGRAMS: Final = 1024
_MOST_BYTES: Final = 1 << 20
"""Characters of all compiled expressions that are kept."""
_MOST_COST: Final = 1000
"""Cost of one evaluation: less than a millisecond."""


def variables_of(node: Node | None, pod: Pod | None, container: Container | None) -> dict[str, Any]:
    """Return the variables of an expression; absent ones are empty objects."""
    return {
        "node": typed(Node() if node is None else node),
        "pod": typed(Pod() if pod is None else pod),
        "container": typed(container),
    }


class UsageExpressions:
    """Compiled expressions, within bounds. `functions` are further functions."""

    def __init__(self, functions: Mapping[str, tuple[Overload, ...]] | None = None) -> None:
        self._conditions = Conditions(
            Random(), "node", "pod", "container", functions=functions or {}, most_cost=_MOST_COST
        )
        self._programs: BoundedCache[str, Condition | str] = BoundedCache(_MOST_PROGRAMS, _MOST_BYTES)

    def value(self, text: str, node: Node | None, pod: Pod | None, container: Container | None) -> float | str:
        """Return the number of an expression, or the text of its error."""
        return self._evaluated(text, lambda program: program.number(variables_of(node, pod, container)))

    def number(self, text: str, variables: Mapping[str, Any]) -> float | str:
        """Return the number of an expression, or the text of its error."""
        return self._evaluated(text, lambda program: program.number(variables))

    def label(self, text: str, variables: Mapping[str, Any]) -> str | Failed:
        """Return the text of an expression, or its error."""
        program = self._program(text)
        if isinstance(program, str):
            return Failed(program)
        try:
            return program.text(variables)
        except Failed as error:
            return error

    def _evaluated(self, text: str, evaluate: Callable[[Condition], float]) -> float | str:
        program = self._program(text)
        if isinstance(program, str):
            return program
        try:
            return evaluate(program)
        except Failed as error:
            return str(error)

    def _program(self, text: str) -> Condition | str:
        """Return the program of an expression, or its error."""
        found = self._programs[text]
        if found is None:
            try:
                found = self._conditions.compile(text)
            except StageError as error:
                found = str(error)[:_MOST_COST]
            self._programs.keep(text, found, len(text))
        return found


UsageOf = Callable[[Any, str, str | None], float]
"""Returns the usage of a resource by a node, a pod, or the container of a pod with this name."""


def functions_of_usage(
    usage: UsageOf, total: UsageOf, started: Callable[[str], float]
) -> dict[str, tuple[Overload, ...]]:
    """Return the functions of metrics: usage now, total usage so far, and containers that have started on a node."""

    def methods(name: str, found: UsageOf) -> tuple[Overload, ...]:
        return (
            Overload(f"kwok_{name}", (DYN, STRING), DOUBLE, lambda of, r: found(struct_of(of), r, None), member=True),
            Overload(
                f"kwok_{name}_container",
                (DYN, STRING, STRING),
                DOUBLE,
                lambda of, r, container: found(struct_of(of), r, container),
                member=True,
            ),
        )

    def count(of: Any) -> float:
        return started(of if isinstance(of, str) else struct_of(of).metadata.name)

    counts = (
        Overload("kwok_started", (DYN,), DOUBLE, count),
        Overload("kwok_method_started", (DYN,), DOUBLE, count, member=True),
    )
    return {
        "Usage": methods("usage", usage),
        "CumulativeUsage": methods("cumulative_usage", total),
        "StartedContainersTotal": counts,
    }


def struct_of(value: Any) -> Any:
    """Return the Node or Pod of a value. Raises EvaluationError."""
    if not isinstance(value, Fields):
        raise EvaluationError("no such overload")
    return value.struct
