"""CEL expressions that select devices (kubernetes `dynamic-resource-allocation/cel`)."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from steersman.cel import declared, types
from steersman.cel.declared import DeclaredType, declared_map, declared_object
from steersman.cel.environment import Environment, Library, Overload
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import ProgramError
from steersman.cel.expression import compile_expression
from steersman.cel.library.bindings import BINDINGS
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import KubernetesEstimator, kubernetes_costs
from steersman.cel.library.quantities import QUANTITY
from steersman.cel.sizes import CallEstimate, CostNode, Range
from steersman.cel.types import BOOL, DYN
from steersman.cel.values import EvaluationError, equal
from steersman.machinery.lane.threads import give_way

MAX_COST: Final = 1_000_000
_MAX_DOMAIN: Final = 63
_MAX_ID: Final = 32
_MAX_DRIVER: Final = 63
_MAX_VALUE: Final = 64
_MAX_ENTRIES: Final = 32
_MAX_INCLUDED: Final = 48
"""Values that a list attribute may have."""

_DOMAIN: Final = declared.STRING.limited(_MAX_DOMAIN)
_ID: Final = declared.STRING.limited(_MAX_ID)
_ATTRIBUTE: Final = declared.ANY.limited(_MAX_VALUE)
_ATTRIBUTES: Final = declared_map(_DOMAIN, declared_map(_ID, _ATTRIBUTE, _MAX_ENTRIES), _MAX_ENTRIES)
_CAPACITY: Final = declared_map(_DOMAIN, declared_map(_ID, DeclaredType(QUANTITY), _MAX_ENTRIES), _MAX_ENTRIES)
_DEVICE: Final = declared_object(
    "kubernetes.DRADevice",
    {
        "driver": declared.STRING.limited(_MAX_DRIVER),
        "attributes": _ATTRIBUTES,
        "capacity": _CAPACITY,
        # A bool has a size here so that comparing one is not free.
        "allowMultipleAllocations": declared.BOOL.limited(1),
    },
)


def _includes(target: Any, wanted: Any) -> bool:
    if not isinstance(target, list | tuple):
        return equal(target, wanted)
    if any(equal(value, wanted) for value in target[:_MAX_INCLUDED]):
        return True
    if len(target) > _MAX_INCLUDED:
        raise EvaluationError(f"'includes' function cannot be applied to lists longer than {_MAX_INCLUDED} values")
    return False


_INCLUDES: Final = Library(
    functions={"includes": (Overload("dra_includes_dyn_dyn", (DYN, DYN), BOOL, _includes, member=True),)}
)
"""For lists in attributes, which are an alpha feature: new expressions cannot use it, but stored ones may."""


@cache
def _environment(*, stored: bool) -> Environment:
    libraries = (BINDINGS, _INCLUDES) if stored else (BINDINGS,)
    return base_environment().extended({"device": _DEVICE}, libraries)


def _size(path: tuple[str, ...]) -> Range | None:
    """The size of a part of a device. Attributes may also be selected by name: all have the same limit."""
    if path[0] != "device":
        return None
    found = _DEVICE
    for name in path[1:]:
        below = found.at((name,))
        if below is None and found.element is _ATTRIBUTE:
            below = _ATTRIBUTE
        if below is None:
            return None
        found = below
    return Range(0, found.max_elements)


class _DeviceEstimator(KubernetesEstimator):
    def call(self, function: str, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
        if overload == "dra_includes_dyn_dyn":
            return CallEstimate(Range(0, _MAX_INCLUDED))
        return super().call(function, overload, target, args)


_ESTIMATOR: Final = _DeviceEstimator(_size)


class Verdict(NamedTuple):
    """What is wrong with an expression: it does not compile, it can never be evaluated, or it may cost too much."""

    error: str | None = None
    failure: str | None = None
    is_too_complex: bool = False


@lru_cache(maxsize=512)
def judge(expression: str, *, stored: bool) -> Verdict:
    """Compiles an expression: new ones may use less than those that are stored already."""
    give_way()
    try:
        compiled = compile_expression(expression, _environment(stored=stored))
    except CompileError as error:
        return Verdict(f"compilation failed: {error}")
    if compiled.type not in (BOOL, types.ANY):
        return Verdict(f"must evaluate to bool or the unknown type, not {compiled.type.text()}")
    try:
        compiled.program(kubernetes_costs)
    except ProgramError as error:
        return Verdict(failure=f"program instantiation failed: {error}")
    return Verdict(is_too_complex=compiled.estimate(_ESTIMATOR).max > MAX_COST)
