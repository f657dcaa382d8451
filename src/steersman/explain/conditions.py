"""Conditions of objects of any kind: every condition that reports a fault."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, NamedTuple

from steersman.client.api_resource import APIResource
from steersman.explain.explainer import Check
from steersman.explain.finding import Finding, Severity, at_condition, at_field, reference
from steersman.explain.world import World
from steersman.machinery.go.strings import to_lower

_BAD_IF_TRUE: Final = ("degraded", "failed", "failure", "stalled", "error", "pressure", "unavailable", "conflict")
"""Ends of the types of conditions that report a fault by True, in lower case."""


class PlainCondition(NamedTuple):
    """A condition of an object in plain data."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


def plain_conditions(obj: dict[str, Any]) -> Iterator[PlainCondition]:
    """Yield the conditions in the status of an object."""
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict):
            yield PlainCondition(*(str(each.get(key) or "") for key in PlainCondition._fields))


def is_fault(condition: PlainCondition) -> bool:
    """Return True if a condition reports a fault by the convention of its type: `Ready` is one if False, `Failed` if
    True.
    """
    if to_lower(condition.type).endswith(_BAD_IF_TRUE):
        return condition.status == "True"
    return condition.status in ("False", "Unknown")


def summary_of_conditions(obj: dict[str, Any]) -> str:
    """Return the state of an object by its phase and its condition Ready or Available, in one line."""
    status = obj.get("status")
    phase = status.get("phase") if isinstance(status, dict) else None
    parts = [str(phase)] if phase else []
    conditions = list(plain_conditions(obj))
    main = next((each for each in conditions if each.type in ("Ready", "Available", "Established")), None)
    if main is not None:
        parts.append(f"{main.type} is {main.status}" + (f" ({main.reason})" if main.reason else ""))
    if not parts:
        faults = sum(map(is_fault, conditions))
        parts.append(f"{faults} of {len(conditions)} conditions report a fault" if conditions else "no conditions")
    return ", ".join(parts)


async def check_conditions(_: World, resource: APIResource[Any], obj: dict[str, Any]) -> AsyncIterator[Finding]:
    """Yield a finding for each condition that reports a fault."""
    subject = reference(resource, obj)
    for each in plain_conditions(obj):
        if is_fault(each):
            text = f"{each.type} is {each.status}: {each.message or each.reason or 'no reason given'}"
            severity = Severity.ERROR if each.status != "Unknown" else Severity.WARNING
            yield Finding(severity, "ConditionFault", text, (at_condition(subject, each),))


async def check_observed(_: World, resource: APIResource[Any], obj: dict[str, Any]) -> AsyncIterator[Finding]:
    """Yield a finding if no controller has processed the newest version of the specification."""
    status = obj.get("status")
    observed = status.get("observedGeneration") if isinstance(status, dict) else None
    generation = (obj.get("metadata") or {}).get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        subject = reference(resource, obj)
        text = f"its controller has not processed generation {generation} yet; the status is of generation {observed}"
        evidence = (
            at_field(subject, ".metadata.generation", generation),
            at_field(subject, ".status.observedGeneration", observed),
        )
        yield Finding(Severity.WARNING, "NotObserved", text, evidence)


CONDITIONS: Final[tuple[Check[Any], ...]] = (check_conditions, check_observed)
