"""Whether a device is one that CEL expressions select."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from steersman.api.resource.v1 import Device, DeviceAttribute, DeviceSelector
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program, ProgramError
from steersman.cel.expression import compile_expression
from steersman.cel.library.devices import device_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.library.quantities import read_quantity
from steersman.cel.library.semvers import parse_version
from steersman.cel.values import CostLimitExceeded, EvaluationError, LazyMap

_MAX_COST: Final = 1_000_000


class SelectionFailed(Exception):
    """An expression cannot be evaluated for a device; the text says which and why."""


class _Domains(LazyMap):
    """Maps by domain; a domain that there is nothing of has an empty one."""

    __slots__ = ("_found",)

    def __init__(self, found: dict[str, dict[str, Any]]) -> None:
        self._found = found

    def find(self, key: Any) -> tuple[Any, Any] | None:
        return key, self._found.get(key, {})

    def __iter__(self) -> Any:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def is_selected(device: Device, driver: str, selectors: list[DeviceSelector], whose: str) -> bool:
    """Whether all selectors select a device; `whose` says whose they are. Raises SelectionFailed."""
    if not selectors:
        return True
    variables = {"device": _variable(device, driver)}
    for number, selector in enumerate(selectors):
        if selector.cel is None:
            raise SelectionFailed(f"{whose}: selector #{number}: CEL expression empty (unsupported selector type?)")
        program = _program(selector.cel.expression)
        if isinstance(program, str):
            raise SelectionFailed(f"{whose}: selector #{number}: CEL compile error: {program}")
        try:
            value, _ = program.evaluate(variables, _MAX_COST)
        except (EvaluationError, CostLimitExceeded) as error:
            raise SelectionFailed(f"{whose}: selector #{number}: CEL runtime error: {error}") from None
        if value is not True:
            return False
    return True


@lru_cache(maxsize=512)
def _program(expression: str) -> Program | str:
    """What evaluates an expression, or why nothing can."""
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


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and name of an attribute; one without a domain is in that of its driver."""
    domain, slash, key = name.partition("/")
    return (domain, key) if slash else (driver, name)


def _value(attribute: DeviceAttribute) -> Any:
    if attribute.int is not None:
        return attribute.int
    if attribute.bool is not None:
        return attribute.bool
    if attribute.string is not None:
        return attribute.string
    return parse_version(attribute.version or "")
