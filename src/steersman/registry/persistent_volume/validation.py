"""Validation of the spec of a PersistentVolume, in volumes and inline in VolumeAttachments."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.core.v1 import PersistentVolumeSpec, VolumeNodeAffinity
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.validation.leaves import validate_name, validate_supported
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.resource_names import validate_positive_quantity
from steersman.machinery.values.quantity import parse
from steersman.registry.persistent_volume.sources import validate_sources
from steersman.registry.pod_template.validation.claims import ACCESS_MODES, VOLUME_MODES
from steersman.registry.pod_template.validation.scheduling import validate_node_selector

RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")

_SPEC: Final = Path("spec")
_NOT_INLINE: Final = "may not be specified in the context of inline volumes"


def _validate_access_modes(modes: Sequence[str], path: Path) -> Iterator[FieldError]:
    if not modes:
        yield required(path)
    for mode in modes:
        yield from validate_supported(mode, ACCESS_MODES, path)
    if "ReadWriteOncePod" in modes and any(mode != "ReadWriteOncePod" and mode in ACCESS_MODES for mode in modes):
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _validate_capacity(capacity: dict[str, str], path: Path) -> Iterator[FieldError]:
    if not capacity:
        yield required(path)
    if set(capacity) != {"storage"}:
        value = {name: capacity[name] for name in sorted(capacity)} or None
        yield not_supported(path, value, ("storage",))
    for name, quantity in capacity.items():
        whole = parse(quantity).as_int()
        if whole < 0:
            yield invalid(path[name], whole, "must be a valid resource quantity")
        yield from validate_positive_quantity(quantity, path[name])


def _validate_class(name: str, path: Path) -> Iterator[FieldError]:
    yield from validate_name(name_is_dns_subdomain, name, path)


def _validate_node_affinity(affinity: VolumeNodeAffinity, path: Path, *, check_values: bool) -> Iterator[FieldError]:
    if affinity.required is None:
        yield required(path / "required", "must specify required node constraints")
    else:
        yield from validate_node_selector(affinity.required, path / "required", check_values=check_values)


def validate_inline_volume_spec(spec: PersistentVolumeSpec, path: Path) -> Iterator[FieldError]:
    """Validate the inline spec of a VolumeAttachment: a CSI volume without a claim."""
    if spec.claim_ref is not None:
        yield forbidden(path / "claimRef", _NOT_INLINE)
    if spec.capacity:
        yield forbidden(path / "capacity", _NOT_INLINE)
    if spec.csi is None:
        yield required(path / "csi", "has to be specified in the context of inline volumes")
    yield from _validate_access_modes(spec.access_modes, path / "accessModes")
    if spec.persistent_volume_reclaim_policy not in ("", "Retain"):
        yield forbidden(path / "persistentVolumeReclaimPolicy", "may only be Retain in the context of inline volumes")
    if spec.node_affinity is not None:
        yield forbidden(path / "nodeAffinity", _NOT_INLINE)
    yield from validate_sources(spec, "", path, has_node_affinity=spec.node_affinity is not None)
    if spec.storage_class_name:
        yield forbidden(path / "storageClassName", _NOT_INLINE)
    if spec.volume_mode not in (None, "Filesystem"):
        detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        yield forbidden(path / "volumeMode", detail)


def validate_volume_spec(spec: PersistentVolumeSpec, name: str, *, check_values: bool = True) -> Iterator[FieldError]:
    """Validate the spec of the volume `name`; `check_values` is False to accept any values in its node affinity."""
    yield from _validate_access_modes(spec.access_modes, _SPEC / "accessModes")
    yield from _validate_capacity(spec.capacity, _SPEC / "capacity")
    policy = spec.persistent_volume_reclaim_policy
    if policy and policy not in RECLAIM_POLICIES:
        yield not_supported(_SPEC / "persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES)
    if spec.node_affinity is not None:
        yield from _validate_node_affinity(spec.node_affinity, _SPEC / "nodeAffinity", check_values=check_values)
    yield from validate_sources(spec, name, _SPEC, has_node_affinity=spec.node_affinity is not None)
    if spec.host_path is not None and posixpath.normpath(spec.host_path.path) == "/" and policy == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden(_SPEC / "persistentVolumeReclaimPolicy", detail)
    if spec.storage_class_name:
        yield from _validate_class(spec.storage_class_name, _SPEC / "storageClassName")
    if spec.volume_mode is not None and spec.volume_mode not in VOLUME_MODES:
        yield not_supported(_SPEC / "volumeMode", spec.volume_mode, VOLUME_MODES)
    attributes_class = spec.volume_attributes_class_name
    if attributes_class is not None:
        if not attributes_class:
            yield required(_SPEC / "volumeAttributesClassName", "an empty string is disallowed")
        else:
            yield from _validate_class(attributes_class, _SPEC / "volumeAttributesClassName")
        if spec.csi is None:
            yield required(_SPEC / "csi", "has to be specified when using volumeAttributesClassName")
