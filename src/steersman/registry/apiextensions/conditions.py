"""Conditions of a definition (apiextensions.k8s.io `apihelpers`)."""

from __future__ import annotations

from typing import Final

from steersman.api.apiextensions.v1 import CustomResourceDefinition, CustomResourceDefinitionCondition
from steersman.machinery.values.times import now

ESTABLISHED: Final = "Established"


def find_condition(definition: CustomResourceDefinition, kind: str) -> CustomResourceDefinitionCondition | None:
    """The first condition of a type."""
    return next((each for each in definition.status.conditions or () if each.type == kind), None)


def is_established(definition: CustomResourceDefinition) -> bool:
    """Whether objects of the kind can be stored, so that it may not be another any more."""
    condition = find_condition(definition, ESTABLISHED)
    return condition is not None and condition.status == "True"


def set_condition(definition: CustomResourceDefinition, kind: str, status: str, reason: str, message: str) -> None:
    """Makes the condition of a type say this; the time is that of its last change of status."""
    found = find_condition(definition, kind)
    if found is None:
        found = CustomResourceDefinitionCondition(type=kind)
        definition.status.conditions = [*(definition.status.conditions or ()), found]
    if found.status != status or found.last_transition_time is None:
        found.last_transition_time = now()
    found.status, found.reason, found.message = status, reason, message
