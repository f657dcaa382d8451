"""Remaining content of a terminating namespace, and the conditions that report it."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from msgspec import Struct, field

from steersman.api.core.v1 import NamespaceCondition
from steersman.client.api_resource import APIResource
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values.conditions import with_condition

_ESTIMATE_OF_FINALIZERS: Final = 15
"""Estimated seconds until finalizers have been removed."""
_GOOD: Final = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)
"""Conditions, with their reasons and messages when all is well."""


class RemainingObjects(Struct):
    """Number of remaining objects of one resource, and of their finalizers by name."""

    number: int = 0
    finalizers: Counter[str] = field(default_factory=Counter)


class Findings(Struct):
    """Remaining content of a namespace, and the errors of its deletion."""

    estimate: int = 0
    """Estimated seconds until the content is gone."""
    discovery: str = ""
    errors: list[StatusError] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    remaining: dict[str, int] = field(default_factory=dict)
    finalizers: Counter[str] = field(default_factory=Counter)

    def failed(self, error: StatusError, estimate: int) -> None:
        """Record an error of the deletion, and the `estimate` in seconds if it is the largest so far."""
        self.errors.append(error)
        self.contents.append(str(error))
        self.estimate = max(self.estimate, estimate)

    def remain(self, resource: APIResource[Any], namespace: str, left: RemainingObjects, estimate: int) -> None:
        """Record the remaining objects of one resource.

        Without an `estimate` (0), objects with finalizers count as gone in the usual time for finalizers, and objects
        without any as an error.
        """
        self.remaining[f"{resource.plural}.{resource.group}"] = left.number
        self.finalizers += left.finalizers
        if not estimate and left.finalizers:
            estimate = _ESTIMATE_OF_FINALIZERS
        elif not estimate:
            text = (
                f"unexpected items still remain in namespace: {namespace} for gvr: "
                f"{resource.group or ''}/{resource.version}, Resource={resource.plural}"
            )
            self.failed(StatusError(500, "InternalError", text), 0)
        self.estimate = max(self.estimate, estimate)

    def updated_conditions(self, conditions: list[NamespaceCondition]) -> list[NamespaceCondition]:
        """Return the namespace's conditions, updated by the findings."""
        wrong = self._failures()
        for type_, reason, message in _GOOD:
            status, reason, message = ("True", *wrong[type_]) if type_ in wrong else ("False", reason, message)
            new = NamespaceCondition(type=type_, status=status, reason=reason, message=message)
            conditions = with_condition(conditions, new)
        return conditions

    def _failures(self) -> dict[str, tuple[str, str]]:
        wrong: dict[str, tuple[str, str]] = {}
        if self.discovery:
            wrong["NamespaceDeletionDiscoveryFailure"] = "DiscoveryFailed", self.discovery
        if self.contents:
            text = ", ".join(sorted(self.contents))
            wrong["NamespaceDeletionContentFailure"] = (
                "ContentDeletionFailed",
                f"Failed to delete all resource types, {len(self.contents)} remaining: {text}",
            )
        if self.remaining:
            texts = sorted(f"{resource} has {number} resource instances" for resource, number in self.remaining.items())
            wrong["NamespaceContentRemaining"] = (
                "SomeResourcesRemain",
                f"Some resources are remaining: {', '.join(texts)}",
            )
        if self.finalizers:
            texts = sorted(f"{name} in {number} resource instances" for name, number in self.finalizers.items())
            wrong["NamespaceFinalizersRemaining"] = (
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {', '.join(texts)}",
            )
        return wrong
