"""Conditions of a CustomResourceDefinition (apiextensions.k8s.io `apihelpers`)."""

from __future__ import annotations

from typing import Final, Protocol

from steersman.api.apiextensions.v1 import CustomResourceDefinitionCondition, CustomResourceDefinitionStatus
from steersman.machinery.values import conditions
from steersman.machinery.values.times import now

ESTABLISHED: Final = "Established"


class HasConditions(Protocol):
    """An object with the status of a definition: the definition itself or a reduced copy."""

    @property
    def status(self) -> CustomResourceDefinitionStatus:
        """Return the status with the conditions."""
        ...


def find_condition(definition: HasConditions, kind: str) -> CustomResourceDefinitionCondition | None:
    """Return the condition of a type, None if there is none."""
    return conditions.find_condition(definition.status.conditions or (), kind)


def is_established(definition: HasConditions) -> bool:
    """Return True if objects of the kind can be stored, so that kind and scope are fixed."""
    return conditions.is_condition_true(definition.status.conditions or (), ESTABLISHED)


def set_condition(definition: HasConditions, kind: str, status: str, reason: str, message: str) -> None:
    """Set the condition of a type."""
    new = CustomResourceDefinitionCondition(type=kind, status=status, reason=reason, message=message)
    definition.status.conditions = conditions.with_condition(definition.status.conditions or (), new)
    new.last_transition_time = new.last_transition_time or now()
