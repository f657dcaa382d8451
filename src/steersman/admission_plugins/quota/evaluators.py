"""Quota evaluators: they tell which writes are charged, and the usage of an object.

This module has the evaluators of services, claims and any other resource. `machinery.built_in.quota` measures the
usage. Pods and resource claims have modules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.api.core.v1 import ScopedResourceSelectorRequirement
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.measure import Measure
from steersman.machinery.built_in.quota.services import ServiceMeasure
from steersman.machinery.built_in.quota.volume_claims import VolumeClaimMeasure


class Evaluator:
    """Quota evaluator for one resource (upstream `quota.Evaluator`)."""

    reads_only_the_object = True
    """True if the evaluator reads nothing but the object, so that it may run in a worker thread."""

    def __init__(self, measure: Measure[Any]) -> None:
        self._measure = measure

    def handles(self, attributes: Attributes) -> bool:
        """Return True if the write can change the usage."""
        return attributes.operation == CREATE and not attributes.action.subresource

    def matching(self, names: Iterable[str]) -> set[str]:
        """Return those names of a quota's resources that objects of this resource use."""
        return self._measure.matching(names)

    def in_scope(self, selector: ScopedResourceSelectorRequirement, obj: Any) -> bool:
        """Return True if a quota with this scope selector applies to the object. Raises SelectorError."""
        return self._measure.in_scope(selector, obj)

    def constraint_error(self, names: set[str], obj: Any) -> str:
        """Return an error if the object does not specify its usage of the limited `names`, "" if it does."""
        return ""

    async def usage(self, obj: Any, namespace: str) -> Amounts:
        """Return the amounts of resources that the object uses, by name."""
        return self._measure.usage(obj)


class ServiceEvaluator(Evaluator):
    """Evaluator of services: updates count too, because the type may change."""

    def __init__(self) -> None:
        super().__init__(ServiceMeasure())

    def handles(self, attributes: Attributes) -> bool:
        return not attributes.action.subresource and attributes.operation in (CREATE, UPDATE)


class VolumeClaimEvaluator(Evaluator):
    """Evaluator of persistent volume claims.

    Writes of the status count too: it has the allocated size and the current volume attributes class. Their usage is
    recorded but never refused.
    """

    def __init__(self) -> None:
        super().__init__(VolumeClaimMeasure())

    def handles(self, attributes: Attributes) -> bool:
        if attributes.action.subresource == "status":
            return attributes.obj is not None and attributes.old is not None
        return not attributes.action.subresource and attributes.operation in (CREATE, UPDATE)
