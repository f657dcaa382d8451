"""What `--runtime-config` can turn on: older versions of resources, and resources that have no stable version yet.

Imported only if something of it is served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from steersman.controlplane.resources import KUBE_API
from steersman.registry.admissionregistration import older_versions as admissionregistration
from steersman.registry.apiserverinternal.storageversions import STORAGE_VERSIONS
from steersman.registry.coordination.leasecandidates import LEASE_CANDIDATES
from steersman.registry.networking import older_versions as networking
from steersman.registry.resource import older_versions as resource
from steersman.registry.resource.devicetaintrules import DEVICE_TAINT_RULES
from steersman.registry.resource.resourcepoolstatusrequests import RESOURCE_POOL_STATUS_REQUESTS
from steersman.registry.services import Services
from steersman.registry.storage import older_versions as storage
from steersman.rest.resource import OtherVersion, Resource

ON_REQUEST: Final[tuple[Resource[Any, Services], ...]] = (
    LEASE_CANDIDATES,
    DEVICE_TAINT_RULES,
    RESOURCE_POOL_STATUS_REQUESTS,
    STORAGE_VERSIONS,
)
"""Resources of which no version is served by default."""

OLDER_VERSIONS: Final[Mapping[str, Mapping[str, tuple[OtherVersion, ...]]]] = {
    "admissionregistration.k8s.io": admissionregistration.OLDER_VERSIONS,
    "networking.k8s.io": networking.OLDER_VERSIONS,
    "resource.k8s.io": resource.OLDER_VERSIONS,
    "storage.k8s.io": storage.OLDER_VERSIONS,
}
"""Other versions of those that are, by group and resource."""


def kube_api(serves: Callable[[str, str, str], bool]) -> tuple[Resource[Any, Services], ...]:
    """The resources of kube-apiserver with the versions for which `serves` (group, version, resource) says so."""
    return tuple(_with_versions(serves))


def _with_versions(serves: Callable[[str, str, str], bool]) -> Iterator[Resource[Any, Services]]:
    for each in KUBE_API:
        older = OLDER_VERSIONS.get(each.group, {}).get(each.plural, ())
        wanted = tuple(other for other in older if serves(other.group, other.version, each.plural))
        yield replace(each, other_versions=(*each.other_versions, *wanted)) if wanted else each
    for each in ON_REQUEST:
        wanted = tuple(other for other in each.other_versions if serves(other.group, other.version, each.plural))
        if wanted or serves(each.group, each.version, each.plural):
            yield replace(each, other_versions=wanted)
