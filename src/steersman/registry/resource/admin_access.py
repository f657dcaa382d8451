"""Admin access to devices that are in use, for claims in namespaces with the label for it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Final, Self, TypeVar

from steersman.api.resource.v1 import DeviceClaim, DeviceRequestAllocationResult
from steersman.machinery.errors.field import FieldError, Path, forbidden
from steersman.registry.services import Services
from steersman.rest.objects import Reading
from steersman.rest.strategy import Strategy

T = TypeVar("T")

LABEL: Final = "resource.kubernetes.io/admin-access"
REFUSAL: Final = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"

_IS_ADMIN: Final[Reading[bool]] = Reading(
    lambda namespace: namespace.metadata.labels.get(LABEL) == "true", "metadata.labels"
)


class AdminAccessStrategy(Strategy[T, Services]):
    """A strategy that knows the namespaces with admin access. Without services no namespace has it.

    The lookup of namespaces happens on use, as their store may be made after this strategy.
    """

    services: Services | None = None

    def bind(self, services: Services) -> Self:
        bound = copy.copy(self)
        bound.services = services
        return bound

    def is_admin_namespace(self, name: str) -> bool:
        """Return True if claims in the namespace may have admin access."""
        if self.services is None:
            return False
        return self.services.objects("", "namespaces").read_cached("", name, _IS_ADMIN) is True

    def validate_admin_access(self, claim: DeviceClaim, namespace: str) -> Iterator[FieldError]:
        """Refuse the first request for admin access in a namespace without it."""
        for index, request in enumerate(claim.requests or ()):
            if request.exactly is not None and request.exactly.admin_access:
                if not self.is_admin_namespace(namespace):
                    yield forbidden(Path("spec", "devices", "requests")[index] / "adminAccess", REFUSAL)
                return

    def validate_admin_results(
        self,
        new: Sequence[DeviceRequestAllocationResult],
        old: Sequence[DeviceRequestAllocationResult],
        namespace: str,
    ) -> Iterator[FieldError]:
        """Refuse the first device that is allocated with admin access elsewhere, unless the old allocation has one."""
        if any(each.admin_access for each in old):
            return
        path = Path("status", "allocation", "devices", "results")
        for index, result in enumerate(new):
            if result.admin_access:
                if not self.is_admin_namespace(namespace):
                    yield forbidden(path[index] / "adminAccess", REFUSAL)
                return
