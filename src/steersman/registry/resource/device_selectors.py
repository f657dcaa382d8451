"""CEL expressions that select devices (kubernetes `dynamic-resource-allocation/cel`)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from steersman.cel import types
from steersman.cel.errors import CompileError
from steersman.cel.expression import compile_expression
from steersman.cel.library.devices import ATTRIBUTE, DEVICE, MAX_INCLUDED, device_environment
from steersman.cel.library.kubernetes_costs import KubernetesEstimator, kubernetes_costs
from steersman.cel.sizes import CallEstimate, CostNode, Range
from steersman.cel.steps import ProgramError
from steersman.cel.types import BOOL
from steersman.work.threads import give_way

MAX_COST: Final = 1_000_000


def _size(path: tuple[str, ...]) -> Range | None:
    """Return the size of a part of a device. Attributes may also be selected by name, as all have the same limit."""
    if path[0] != "device":
        return None
    found = DEVICE
    for name in path[1:]:
        below = found.at((name,))
        if below is None and found.element is ATTRIBUTE:
            below = ATTRIBUTE
        if below is None:
            return None
        found = below
    return Range(0, found.max_elements)


class _DeviceEstimator(KubernetesEstimator):
    def call(self, function: str, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
        if overload == "dra_includes_dyn_dyn":
            return CallEstimate(Range(0, MAX_INCLUDED))
        return super().call(function, overload, target, args)


_ESTIMATOR: Final = _DeviceEstimator(_size)


class Verdict(NamedTuple):
    """The result of checking an expression: a compile error, a failure to evaluate, or a cost that is too high."""

    error: str | None = None
    failure: str | None = None
    is_too_complex: bool = False


@lru_cache(maxsize=512)
def check_expression(expression: str, *, stored: bool) -> Verdict:
    """Compile and check an expression; stored expressions may use more of the environment than new ones."""
    give_way()
    try:
        compiled = compile_expression(expression, device_environment(stored=stored))
    except CompileError as error:
        return Verdict(f"compilation failed: {error}")
    if compiled.type not in (BOOL, types.ANY):
        return Verdict(f"must evaluate to bool or the unknown type, not {compiled.type.text()}")
    try:
        compiled.program(kubernetes_costs)
    except ProgramError as error:
        return Verdict(failure=f"program instantiation failed: {error}")
    return Verdict(is_too_complex=compiled.estimate(_ESTIMATOR).max > MAX_COST)
