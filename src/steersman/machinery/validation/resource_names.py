"""Names of resources (cpu, memory, pods...) and rules for their quantities (pkg/apis/core/helper, validation)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.formats import is_qualified_name
from steersman.machinery.values.quantity import is_whole_in_milli, parse

COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources that a container can request, besides huge pages and extended resources."""

_COUNTED: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_SUMS: Final = frozenset(f"{prefix}.{name}" for prefix in ("requests", "limits") for name in COMPUTE)
QUOTA_RESOURCES: Final = COMPUTE | _SUMS | _COUNTED | {"requests.storage"}
"""Resources that a ResourceQuota can limit by a plain name, besides huge pages."""
_STANDARD: Final = QUOTA_RESOURCES | {"storage"}

_HUGE_PAGES: Final = "hugepages-"
_REQUESTS: Final = "requests."


def is_huge_page_resource(name: str) -> bool:
    """Return True for huge pages of a size, as containers request them."""
    return name.startswith(_HUGE_PAGES)


def is_quota_huge_page_resource(name: str) -> bool:
    """Return True for huge pages, as quotas limit them."""
    return name.startswith((_HUGE_PAGES, _REQUESTS + _HUGE_PAGES))


def is_quota_resource(name: str) -> bool:
    """Return True if a quota can limit the resource by a plain name."""
    return name in QUOTA_RESOURCES or is_quota_huge_page_resource(name)


def is_native_resource(name: str) -> bool:
    """Return True if the resource is in the namespace kubernetes.io, as names without a prefix are."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    """Return True for a resource beyond the native ones that nodes may offer, such as example.com/gpu."""
    if is_native_resource(name) or name.startswith(_REQUESTS):
        return False
    return not is_qualified_name(_REQUESTS + name)


def is_integer_resource(name: str) -> bool:
    """Return True if only whole numbers of the resource are allowed."""
    return name in _COUNTED or is_extended_resource(name)


def is_overcommit_allowed(name: str) -> bool:
    """Return True if limits of the resource may exceed the available amount."""
    return is_native_resource(name) and not is_huge_page_resource(name)


def validate_resource_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate that the name is a known resource or has a domain."""
    faults = is_qualified_name(name)
    for message in faults:
        yield invalid(path, name, message)
    if not faults and "/" not in name and name not in _STANDARD and not is_quota_huge_page_resource(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def validate_container_resource_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate that a container can request the resource."""
    yield from validate_resource_name(name, path)
    if "/" not in name:
        if name not in COMPUTE and not is_huge_page_resource(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def validate_quota_resource_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate that a quota can limit the resource."""
    yield from validate_resource_name(name, path)
    if "/" not in name and not is_quota_resource(name):
        yield invalid(path, name, "must be a standard resource for quota")


def validate_quantity(name: str, quantity: str, path: Path) -> Iterator[FieldError]:
    """Validate that an amount of a resource is not negative, and whole where required."""
    if parse(quantity).sign < 0:
        yield invalid(path, quantity, "must be greater than or equal to 0")
    if is_integer_resource(name) and not is_whole_in_milli(quantity):
        yield invalid(path, quantity, "must be an integer")


def validate_positive_quantity(quantity: str, path: Path) -> Iterator[FieldError]:
    """Validate that an amount is above zero."""
    if parse(quantity).sign <= 0:
        yield invalid(path, quantity, "must be greater than zero")
