"""Whether a device is one that CEL expressions select."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from steersman.api.resource.v1 import Device, DeviceAttribute, DeviceSelector
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program
from steersman.cel.expression import compile_expression
from steersman.cel.library.devices import device_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.library.quantities import read_quantity
from steersman.cel.library.semvers import parse_version
from steersman.cel.steps import ProgramError
from steersman.cel.values import CostLimitExceeded, EvaluationError, LazyMap
from steersman.work.offloading import offload_if

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


class Selections:
    """Devices that selectors select for one pod: evaluated in a thread by `look`, so that the loop only reads it."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[int, str], bool | str] = {}
        self._devices: dict[int, Device] = {}
        """Devices that were looked at, by identity, which stays theirs as long as they are kept."""

    async def look(self, devices: Sequence[tuple[Device, str]], chains: Iterable[Sequence[DeviceSelector]]) -> None:
        """Evaluates `chains` of selectors for devices with their drivers, each chain up to what does not select."""
        expressions = {tuple(each.cel.expression for each in chain if each.cel is not None) for chain in chains}
        wanted = sorted(each for each in expressions if each)
        if wanted:
            self._outcomes |= await offload_if(True, _outcomes, devices, wanted)
            self._devices |= {id(device): device for device, _ in devices}

    def is_selected(self, device: Device, driver: str, selectors: Sequence[DeviceSelector], whose: str) -> bool:
        """Whether all selectors select a device; `whose` says whose they are. Raises SelectionFailed."""
        for number, selector in enumerate(selectors):
            if selector.cel is None:
                raise SelectionFailed(f"{whose}: selector #{number}: CEL expression empty (unsupported selector type?)")
            expression = selector.cel.expression
            outcome = self._outcomes.get((id(device), expression))
            if outcome is None:  # the device has come since: another look follows
                outcome = "CEL runtime error: the device has changed meanwhile"
            if isinstance(outcome, str):
                raise SelectionFailed(f"{whose}: selector #{number}: {outcome}")
            if not outcome:
                return False
        return True


def _outcomes(
    devices: Sequence[tuple[Device, str]], chains: Sequence[tuple[str, ...]]
) -> dict[tuple[int, str], bool | str]:
    """By identity of the device and expression."""
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
    """Whether an expression selects a device, or why that cannot be said."""
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
