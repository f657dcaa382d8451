"""Validation of the downward API: fields and resources of a pod that its containers may read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.leaves import validate_qualified_name, validate_supported
from steersman.machinery.values.quantity import parse

VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)

_LABELS: Final = frozenset(
    {
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
"""Field labels of pods."""

_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_SIZES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SIZES_TEXT: Final = f"only divisor's values {', '.join(_SIZES)} are supported with the"
_DIVISORS: Final = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (_SIZES, f"{_SIZES_TEXT} memory resource"),
    "ephemeral-storage": (_SIZES, f"{_SIZES_TEXT} local ephemeral storage resource"),
    "hugepages": (_SIZES, f"{_SIZES_TEXT} hugepages resource"),
}


def validate_object_field_selector(
    selector: core.ObjectFieldSelector, fields: tuple[str, ...], path: Path
) -> Iterator[FieldError]:
    """Validate a reference to a field of the pod; `fields` are the fields allowed without a subscript."""
    if not selector.api_version:
        yield required(path / "apiVersion")
        return
    if not selector.field_path:
        yield required(path / "fieldPath")
        return
    name, subscript = split_subscript(selector.field_path)
    if fault := _conversion_error(selector.api_version, selector.field_path, name, subscript):
        yield invalid(path / "fieldPath", selector.field_path, f"error converting fieldPath: {fault}")
        return
    name = "spec.nodeName" if name == "spec.host" else name
    if subscript is None:
        yield from validate_supported(name, fields, path / "fieldPath")
    elif name == "metadata.annotations":
        yield from validate_qualified_name(to_lower(subscript), path)
    else:
        yield from validate_qualified_name(subscript, path)


def split_subscript(field_path: str) -> tuple[str, str | None]:
    """Split `metadata.labels['x']` into ("metadata.labels", "x"); the second part is None without a subscript."""
    if field_path.endswith("']"):
        name, bracket, subscript = field_path[:-2].partition("['")
        if bracket and name:
            return name, subscript
    return field_path, None


def _conversion_error(version: str, label: str, name: str, subscript: str | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        if name not in ("metadata.annotations", "metadata.labels"):
            return f"field label does not support subscript: {label}"
    elif label not in _LABELS and label != "spec.host":
        return f"field label not supported: {label}"
    return ""


def validate_resource_field_selector(
    selector: core.ResourceFieldSelector, path: Path, *, container_needed: bool
) -> Iterator[FieldError]:
    """Validate a reference to a request or limit of a container; in a volume it must name the container."""
    resource = selector.resource
    if container_needed and not selector.container_name:
        yield required(path / "containerName")
    elif not resource:
        yield required(path / "resource")
    elif resource not in RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield not_supported(path / "resource", resource, RESOURCES)
    if not parse(selector.divisor):
        return
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else resource.partition(".")[2]
    if (resource in RESOURCES or kind == "hugepages") and selector.divisor not in _DIVISORS[kind][0]:
        yield invalid(path / "divisor", resource, _DIVISORS[kind][1])
