"""CEL expressions on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from steersman.api.resource.v1 import Device, DeviceAttribute
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program
from steersman.cel.expression import compile_expression
from steersman.cel.library.devices import device_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.library.quantities import read_quantity
from steersman.cel.library.semvers import parse_version
from steersman.cel.steps import ProgramError
from steersman.cel.values import CostLimitExceeded, EvaluationError, LazyMap
from steersman.scheduler.devices.qualified_names import qualified
from steersman.work.threads import paced

_MAX_COST: Final = 1_000_000
"""Cost of one evaluation at most (`resource.k8s.io/v1` CELSelectorExpressionMaxCost)."""
_EVALUATION_COST: Final = 20
"""Cost of an evaluation beside that of its operations, whose units take about a microsecond."""
_COMPILING_COST: Final = 8
"""Cost of compiling a character of an expression."""


class _Domains(LazyMap):
    """Maps by domain; an unknown domain has an empty map."""

    __slots__ = ("_found",)

    def __init__(self, found: dict[str, dict[str, Any]]) -> None:
        self._found = found

    def find(self, key: Any) -> tuple[Any, Any] | None:
        return key, self._found.get(key, {})

    def __iter__(self) -> Any:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class Outcomes(NamedTuple):
    """Outcomes of expressions."""

    found: dict[tuple[int, str], bool | str]
    """True if an expression selects a device, or the error, by identity of the device and by expression."""
    complete: bool
    """False if some are missing, as they would have cost too much."""


def outcomes(devices: Sequence[tuple[Device, str]], chains: Sequence[tuple[str, ...]], budget: int) -> Outcomes:
    """Compile and evaluate expressions at a cost of at most `budget`, and return the outcomes.

    Each chain of expressions is evaluated up to the first one that does not select the device.
    """
    found: dict[tuple[int, str], bool | str] = {}
    budget -= sum(len(each) * _COMPILING_COST for each in {each for chain in chains for each in chain})
    for device, driver in paced(devices):
        variables = {"device": _variable(device, driver)}
        for chain in chains:
            for expression in chain:
                key = id(device), expression
                if key not in found:
                    if budget <= 0:
                        return Outcomes(found, False)
                    found[key], cost = _outcome(expression, variables)
                    budget -= cost + _EVALUATION_COST
                if found[key] is not True:
                    break
    return Outcomes(found, True)


def _outcome(expression: str, variables: Mapping[str, Any]) -> tuple[bool | str, int]:
    """Return True if an expression selects a device, or the error of compiling or evaluating it, and the cost."""
    program = _program(expression)
    if isinstance(program, str):
        return f"CEL compile error: {program}", 0
    value, cost = program.outcome(variables, _MAX_COST)
    if isinstance(value, (EvaluationError, CostLimitExceeded)):
        return f"CEL runtime error: {value}", cost
    return value is True, cost


@lru_cache(maxsize=512)
def _program(expression: str) -> Program | str:
    """Return the compiled program of an expression, or the error of compiling it."""
    try:
        return compile_expression(expression, device_environment(stored=True)).program(kubernetes_costs)
    except (CompileError, ProgramError) as error:
        return f"compilation failed: {error}"


def _variable(device: Device, driver: str) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in device.attributes.items():
        domain, key = qualified(name, driver)
        attributes.setdefault(domain, {})[key] = _value(attribute)
    capacity: dict[str, dict[str, Any]] = {}
    for name, each in device.capacity.items():
        domain, key = qualified(name, driver)
        capacity.setdefault(domain, {})[key] = read_quantity(each.value)
    return {
        "driver": driver,
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
        "attributes": _Domains(attributes),
        "capacity": _Domains(capacity),
    }


def _value(attribute: DeviceAttribute) -> Any:
    if attribute.int is not None:
        return attribute.int
    if attribute.bool is not None:
        return attribute.bool
    if attribute.string is not None:
        return attribute.string
    return parse_version(attribute.version or "")
