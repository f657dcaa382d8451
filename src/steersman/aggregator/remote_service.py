"""The facts of an APIService about the server of its group version, decoded once for each change."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from steersman.api.apiregistration.v1 import APIService
from steersman.machinery.values.conditions import find_condition
from steersman.rest.objects import Reading

AVAILABLE: Final = "Available"
LEGACY: Final = "v1."
"""The name of the APIService of /api."""


class ServiceKey(Struct, frozen=True):
    """A port of a Service."""

    namespace: str
    name: str
    port: int

    @property
    def server_name(self) -> str:
        """The DNS name that the server's certificate must have."""
        return f"{self.name}.{self.namespace}.svc"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.port}"


class Condition(Struct, frozen=True):
    """The condition Available, without its time."""

    status: str
    reason: str = ""
    message: str = ""

    @property
    def is_true(self) -> bool:
        """Return True if the status is "True"; False if it is "False" or "Unknown"."""
        return self.status == "True"


LOCAL: Final = Condition("True", "Local", "Local APIServices are always available")


class Registration(Struct, frozen=True):
    """An APIService. Without a `service`, this server answers."""

    name: str
    group: str
    version: str
    service: ServiceKey | None
    ca_bundle: bytes
    insecure: bool
    group_priority: int
    version_priority: int
    condition: Condition | None

    @property
    def root(self) -> str:
        """The path of the group version."""
        return "/api" if self.name == LEGACY else f"/apis/{self.group}/{self.version}"

    @property
    def discovery_path(self) -> str:
        """The path of the group version's resource list."""
        return f"/api/{self.version}" if self.name == LEGACY else self.root

    @property
    def is_available(self) -> bool:
        """Return True if the condition Available is there and true."""
        return self.condition is not None and self.condition.is_true


def _registration(service: APIService) -> Registration:
    spec, reference = service.spec, service.spec.service
    key = None if reference is None else ServiceKey(reference.namespace, reference.name, reference.port or 443)
    return Registration(
        service.metadata.name,
        spec.group,
        spec.version,
        key,
        spec.ca_bundle,
        spec.insecure_skip_tls_verify,
        spec.group_priority_minimum,
        spec.version_priority,
        condition_of(service),
    )


def condition_of(service: APIService) -> Condition | None:
    """Return the condition Available of an APIService, None if it has none."""
    condition = find_condition(service.status.conditions, AVAILABLE)
    return None if condition is None else Condition(condition.status, condition.reason, condition.message)


REGISTRATION: Final[Reading[Registration]] = Reading(
    _registration,
    "metadata.name",
    "spec.group",
    "spec.version",
    "spec.service",
    "spec.caBundle",
    "spec.insecureSkipTLSVerify",
    "spec.groupPriorityMinimum",
    "spec.versionPriority",
    "status.conditions",
)
