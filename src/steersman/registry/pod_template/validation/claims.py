"""Validation of the spec of a PersistentVolumeClaim, in claims and in templates of ephemeral volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.validation.formats import is_dns1123_subdomain
from steersman.machinery.validation.leaves import validate_name, validate_supported, validate_with
from steersman.machinery.validation.object_meta import name_is_dns_subdomain, validate_namespace_name
from steersman.machinery.validation.resource_names import validate_positive_quantity, validate_quantity
from steersman.machinery.validation.selectors import STRICT, LabelSelectorOptions, validate_label_selector

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")

_CLAIM: Final = "PersistentVolumeClaim"


def validate_claim_spec(
    spec: core.PersistentVolumeClaimSpec,
    path: Path,
    selector_options: LabelSelectorOptions = STRICT,
    *,
    allow_invalid_api_group: bool = False,
) -> Iterator[FieldError]:
    """Validate a claim spec. `allow_invalid_api_group` is for claims stored before data sources were validated."""
    if not spec.access_modes:
        yield required(path / "accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.selector, path / "selector", selector_options)
    yield from _validate_access_modes(spec.access_modes, path / "accessModes")
    storage = (path / "resources")["storage"]
    requested = spec.resources.requests.get("storage")
    if requested is None:
        yield required(storage)
    else:
        faults = list(validate_positive_quantity(requested, storage))
        yield from faults or validate_quantity("storage", requested, storage)
    if spec.storage_class_name:
        yield from validate_name(name_is_dns_subdomain, spec.storage_class_name, path / "storageClassName")
    if spec.volume_mode is not None and spec.volume_mode not in VOLUME_MODES:
        yield not_supported(path / "volumeMode", spec.volume_mode, VOLUME_MODES)
    yield from _validate_sources(spec, path, check_group=not allow_invalid_api_group)
    if spec.volume_attributes_class_name:
        for message in name_is_dns_subdomain(spec.volume_attributes_class_name, False):
            yield invalid(path / "volumeAttributesClassName", spec.volume_attributes_class_name, message)


def _validate_access_modes(modes: list[str], path: Path) -> Iterator[FieldError]:
    for mode in modes:
        yield from validate_supported(mode, ACCESS_MODES, path)
    if "ReadWriteOncePod" in modes and any(mode != "ReadWriteOncePod" and mode in ACCESS_MODES for mode in modes):
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _validate_sources(spec: core.PersistentVolumeClaimSpec, path: Path, *, check_group: bool) -> Iterator[FieldError]:
    source, ref = spec.data_source, spec.data_source_ref
    if source is not None:
        yield from _validate_source(source, path / "dataSource", check_group=check_group)
    if ref is not None:
        yield from _validate_source(ref, path / "dataSourceRef", check_group=check_group)
        if ref.namespace:
            yield from validate_name(validate_namespace_name, ref.namespace, path.child("dataSourceRef", "namespace"))
    if source is None or ref is None:
        return
    # Upstream passes a Path as the value, which prints as {} as it has no exported fields.
    if ref.namespace:
        yield invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif (source.api_group, source.kind, source.name) != (ref.api_group, ref.kind, ref.name):
        yield invalid(path, {}, "must match dataSourceRef")


def _validate_source(
    source: core.TypedLocalObjectReference | core.TypedObjectReference, path: Path, *, check_group: bool
) -> Iterator[FieldError]:
    if not source.name:
        yield required(path / "name")
    if not source.kind:
        yield required(path / "kind")
    if not source.api_group:
        if source.kind != _CLAIM:
            text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            yield invalid(path, source.kind, text)
    elif check_group:
        yield from validate_with(is_dns1123_subdomain, source.api_group, path / "apiGroup")
