"""Which writes are charged to quotas, and with what: of any resource, of services and of persistent volume claims.

What objects use is measured in `machinery.built_in.quota`. Pods and resource claims have modules of their own.
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
    """Says of writes to objects of one resource what they cost."""

    reads_only_the_object = True
    """Whether it can do its work beside the event loop: it looks up nothing else."""

    def __init__(self, measure: Measure[Any]) -> None:
        self._measure = measure

    def handles(self, attributes: Attributes) -> bool:
        """Whether the write can change what is used."""
        return attributes.operation == CREATE and not attributes.action.subresource

    def matching(self, names: Iterable[str]) -> set[str]:
        """Those of a quota's resources that such objects use."""
        return self._measure.matching(names)

    def in_scope(self, selector: ScopedResourceSelectorRequirement, obj: Any) -> bool:
        """Whether a quota with this scope is about the object. Raises SelectorError."""
        return self._measure.in_scope(selector, obj)

    def missing(self, names: set[str], obj: Any) -> str:
        """What the object must say as `names` are limited, "" if it says all."""
        return ""

    async def usage(self, obj: Any, namespace: str) -> Amounts:
        """Return how much of which resources the object uses."""
        return self._measure.usage(obj)


class ServiceEvaluator(Evaluator):
    """The type of a service can change."""

    def __init__(self) -> None:
        super().__init__(ServiceMeasure())

    def handles(self, attributes: Attributes) -> bool:
        return not attributes.action.subresource and attributes.operation in (CREATE, UPDATE)


class VolumeClaimEvaluator(Evaluator):
    """A status tells of what was allocated and of the volume attributes class in use; it is recorded, but never refused
    for being too much."""

    def __init__(self) -> None:
        super().__init__(VolumeClaimMeasure())

    def handles(self, attributes: Attributes) -> bool:
        if attributes.action.subresource == "status":
            return attributes.obj is not None and attributes.old is not None
        return not attributes.action.subresource and attributes.operation in (CREATE, UPDATE)
