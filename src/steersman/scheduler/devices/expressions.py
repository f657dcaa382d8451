"""CEL expressions on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

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

_MAX_COST: Final = 1_000_000


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


def outcomes(
    devices: Sequence[tuple[Device, str]], chains: Sequence[tuple[str, ...]]
) -> dict[tuple[int, str], bool | str]:
    """Return outcomes by identity of the device and by expression: True if it selects the device, or the error.

    Each chain of expressions is evaluated up to the first one that does not select the device.
    """
    found: dict[tuple[int, str], bool | str] = {}
    for device, driver in devices:
        variables = {"device": _variable(device, driver)}
        for chain in chains:
            for expression in chain:
                key = id(device), expression
                if key not in found:
                    found[key] = _outcome(expression, variables)
                if found[key] is not True:
                    break
    return found


def _outcome(expression: str, variables: Mapping[str, Any]) -> bool | str:
    """Return True if an expression selects a device, or the error of compiling or evaluating the expression."""
    program = _program(expression)
    if isinstance(program, str):
        return f"CEL compile error: {program}"
    try:
        value, _ = program.evaluate(variables, _MAX_COST)
    except (EvaluationError, CostLimitExceeded) as error:
        return f"CEL runtime error: {error}"
    return value is True


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
