"""Conditions of a definition (apiextensions.k8s.io `apihelpers`)."""

from __future__ import annotations

from typing import Final, Protocol

from steersman.api.apiextensions.v1 import CustomResourceDefinitionCondition, CustomResourceDefinitionStatus
from steersman.machinery.values.times import now

ESTABLISHED: Final = "Established"


class HasConditions(Protocol):
    """A definition, or what is kept of one."""

    @property
    def status(self) -> CustomResourceDefinitionStatus: ...


def find_condition(definition: HasConditions, kind: str) -> CustomResourceDefinitionCondition | None:
    """The first condition of a type."""
    return next((each for each in definition.status.conditions or () if each.type == kind), None)


def is_established(definition: HasConditions) -> bool:
    """Whether objects of the kind can be stored, so that it may not be another any more."""
    condition = find_condition(definition, ESTABLISHED)
    return condition is not None and condition.status == "True"


def set_condition(definition: HasConditions, kind: str, status: str, reason: str, message: str) -> None:
    """Makes the condition of a type say this; the time is that of its last change of status."""
    found = find_condition(definition, kind)
    if found is None:
        found = CustomResourceDefinitionCondition(type=kind)
        definition.status.conditions = [*(definition.status.conditions or ()), found]
    if found.status != status or found.last_transition_time is None:
        found.last_transition_time = now()
    found.status, found.reason, found.message = status, reason, message
