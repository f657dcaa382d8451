"""PersistentVolumeClaims: requests of pods for storage, each bound to a volume once one is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from steersman.api.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    TypedLocalObjectReference,
    TypedObjectReference,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.built_in.classes import STORAGE_CLASS, storage_class_of
from steersman.machinery.built_in.pod_resources import round_up_to_milli
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.validation.formats import is_qualified_name
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_immutable
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.resource_names import is_native_resource, validate_quantity
from steersman.machinery.validation.selectors import (
    STRICT,
    LabelSelectorOptions,
    label_selector_has_invalid_label_value,
)
from steersman.machinery.values.quantity import parse
from steersman.registry.core.volumes.persistentvolumes import access_modes_text, phase_text, unset
from steersman.registry.pod_template.validation.claims import validate_claim_spec
from steersman.registry.pod_template.volume_defaults import set_claim_spec_defaults
from steersman.registry.pod_template.warnings import claim_spec_warnings
from steersman.registry.printing.internal_form import internal_diff
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import Strategy

RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_STORAGE: Final = _SPEC.child("resources", "requests", "storage")
_ATTRIBUTES_CLASS: Final = _SPEC / "volumeAttributesClassName"
_SPEC_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
)
_ZERO: Final = "0"


def _normalize_sources(spec: PersistentVolumeClaimSpec) -> None:
    """Fill in whichever of `dataSource` and `dataSourceRef` is missing from the other.

    A reference to another namespace has no equivalent `dataSource`.
    """
    source, ref = spec.data_source, spec.data_source_ref
    if source is not None and ref is None:
        spec.data_source_ref = TypedObjectReference(api_group=source.api_group, kind=source.kind, name=source.name)
    elif ref is not None and source is None and not ref.namespace:
        spec.data_source = TypedLocalObjectReference(api_group=ref.api_group, kind=ref.kind, name=ref.name)


def _drop_unknown_source(spec: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec | None) -> None:
    """Drop data sources that are ignored.

    These are references to other namespaces (a feature that is off), and in `dataSource` anything but claims and
    snapshots.
    """
    ref = spec.data_source_ref
    if ref is not None and ref.namespace and (old is None or old.data_source_ref is None):
        spec.data_source_ref = ref = None
    if (old is not None and (old.data_source or old.data_source_ref)) or ref is not None:
        return
    source = spec.data_source
    if source is not None and (source.api_group or "", source.kind) not in (
        ("", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    ):
        spec.data_source = None


def _has_api_group(spec: PersistentVolumeClaimSpec) -> bool:
    """Return True if a stored claim names an API group, even one that would be refused today; updates then accept any."""
    return any(each.api_group for each in (spec.data_source, spec.data_source_ref) if each is not None)


def _validate_spec(new: PersistentVolumeClaim, old: PersistentVolumeClaim | None) -> Iterator[FieldError]:
    lenient = old is not None and label_selector_has_invalid_label_value(old.spec.selector)
    return validate_claim_spec(
        new.spec,
        _SPEC,
        LabelSelectorOptions(allow_invalid_label_value=True) if lenient else STRICT,
        allow_invalid_api_group=old is not None and _has_api_group(old.spec),
    )


def _comparable(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> tuple[PersistentVolumeClaimSpec, ...]:
    """Return the new and the old spec with all mutable fields made equal."""
    after = msgspec.structs.replace(new.spec)
    before = msgspec.structs.replace(old.spec)
    if not before.volume_name:
        before.volume_name = after.volume_name
    name = after.storage_class_name
    annotation = old.metadata.annotations.get(STORAGE_CLASS)
    if before.storage_class_name is None and name is not None and annotation in (None, name):
        after.storage_class_name = None
    if new.status.phase == "Bound":
        if after.resources.requests:
            requests = {**after.resources.requests, "storage": before.resources.requests.get("storage", _ZERO)}
            after.resources = msgspec.structs.replace(after.resources, requests=requests)
        after.volume_attributes_class_name = before.volume_attributes_class_name
    return after, before


def _moves_class_from_annotation(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> bool:
    """Return True if the update copies the storage class from the annotation into the spec."""
    before = old.metadata.annotations.get(STORAGE_CLASS)
    return (
        before is not None
        and old.spec.storage_class_name is None
        and new.spec.storage_class_name == before
        and new.metadata.annotations.get(STORAGE_CLASS, before) == before
    )


def _validate_size_update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Iterator[FieldError]:
    """Allow a smaller request only down to the claim's present capacity."""
    size = parse(new.spec.resources.requests.get("storage", _ZERO))
    if size < parse(old.spec.resources.requests.get("storage", _ZERO)) and size <= parse(
        old.status.capacity.get("storage", _ZERO)
    ):
        yield forbidden(_STORAGE, "field can not be less than status.capacity")


def _validate_attributes_class_update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Iterator[FieldError]:
    name = new.spec.volume_attributes_class_name
    if name == old.spec.volume_attributes_class_name or old.status.current_volume_attributes_class_name is None:
        return
    what = "nil" if name is None else "empty string"
    if not name:
        detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        yield forbidden(_ATTRIBUTES_CLASS, detail)


class PersistentVolumeClaimStrategy(Strategy[PersistentVolumeClaim]):
    resets = ("status",)

    def prepare_for_create(self, ctx: Context, obj: PersistentVolumeClaim) -> None:
        super().prepare_for_create(ctx, obj)
        obj.status.phase = "Pending"
        _drop_unknown_source(obj.spec, None)
        _normalize_sources(obj.spec)

    def validate(self, ctx: Context, obj: PersistentVolumeClaim) -> Iterator[FieldError]:
        return _validate_spec(obj, None)

    def warnings(self, ctx: Context, obj: PersistentVolumeClaim) -> Iterator[str]:
        return _warnings(obj)

    def prepare_for_update(self, ctx: Context, new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> None:
        super().prepare_for_update(ctx, new, old)
        _drop_unknown_source(new.spec, old.spec)
        _normalize_sources(new.spec)
        _normalize_sources(old.spec)

    def validate_update(
        self, ctx: Context, new: PersistentVolumeClaim, old: PersistentVolumeClaim
    ) -> Iterator[FieldError]:
        yield from _validate_spec(new, old)
        if not _moves_class_from_annotation(new, old):
            after, before = (each.metadata.annotations.get(STORAGE_CLASS, "") for each in (new, old))
            if after != before:
                path = Path("metadata", "annotations", STORAGE_CLASS)
                yield invalid(path, after, FIELD_IMMUTABLE)
        changed, unchanged = _comparable(new, old)
        if changed != unchanged:
            yield forbidden(_SPEC, _SPEC_IMMUTABLE + internal_diff(unchanged, changed))
        yield from _validate_size_update(new, old)
        yield from validate_immutable(new.spec.volume_mode, old.spec.volume_mode, Path("volumeMode"))
        yield from _validate_attributes_class_update(new, old)


class PersistentVolumeClaimStatusStrategy(PersistentVolumeClaimStrategy):
    resets = ("spec",)

    def prepare_for_update(self, ctx: Context, new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> None:
        Strategy.prepare_for_update(self, ctx, new, old)

    def validate_update(
        self, ctx: Context, new: PersistentVolumeClaim, old: PersistentVolumeClaim
    ) -> Iterator[FieldError]:
        status = new.status
        if not new.spec.access_modes:
            yield required(Path("Spec", "accessModes"))
        for name, quantity in status.capacity.items():
            yield from _validate_basic_quantity(quantity, _STATUS.child("capacity")[name])
        path = _STATUS / "allocatedResourceStatuses"
        for name, resize in status.allocated_resource_statuses.items():
            yield from _validate_resource_key(name, path)
            if resize not in RESIZE_STATUSES:
                yield not_supported(path, name, RESIZE_STATUSES)
        path = _STATUS / "allocatedResources"
        for name, quantity in status.allocated_resources.items():
            faults = list(_validate_resource_key(name, path)) or list(_validate_basic_quantity(quantity, path[name]))
            yield from faults or validate_quantity("storage", quantity, path[name])

    def warnings_on_update(self, ctx: Context, new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Iterator[str]:
        return iter(())


def _validate_basic_quantity(quantity: str, path: Path) -> Iterator[FieldError]:
    whole = parse(quantity).as_int()
    if whole < 0:
        yield invalid(path, whole, "must be a valid resource quantity")


def _validate_resource_key(name: str, path: Path) -> Iterator[FieldError]:
    faults = is_qualified_name(name)
    for message in faults:
        yield invalid(path, name, message)
    if not faults and is_native_resource(name) and name != "storage":
        yield not_supported(path, name, ("storage",))


def _warnings(claim: PersistentVolumeClaim) -> Iterator[str]:
    if STORAGE_CLASS in claim.metadata.annotations:
        yield f'metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
    yield from claim_spec_warnings(claim.spec, _SPEC)


def default_persistent_volume_claim(claim: PersistentVolumeClaim) -> None:
    """Set the defaults of SetDefaults_PersistentVolumeClaim and SetDefaults_PersistentVolumeClaimSpec."""
    claim.status.phase = claim.status.phase or "Pending"
    set_claim_spec_defaults(claim.spec)
    round_up_to_milli(claim.status.capacity)
    round_up_to_milli(claim.status.allocated_resources)


def _capacity(claim: PersistentVolumeClaim) -> str:
    return claim.status.capacity.get("storage", _ZERO) if claim.spec.volume_name else ""


PERSISTENT_VOLUME_CLAIMS: Final = Resource(
    kind=built_in(PersistentVolumeClaim, default=default_persistent_volume_claim),
    plural="persistentvolumeclaims",
    short_names=("pvc",),
    strategy=PersistentVolumeClaimStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(
        Column("Status", phase_text),
        Column("Volume", lambda c: c.spec.volume_name),
        Column("Capacity", _capacity),
        Column("Access Modes", lambda c: access_modes_text(c.status.access_modes) if c.spec.volume_name else ""),
        Column("StorageClass", storage_class_of, description="StorageClass of the pvc"),
        Column(
            "VolumeAttributesClass",
            lambda c: unset(c.spec.volume_attributes_class_name),
            description="VolumeAttributesClass of the pvc",
        ),
        AGE,
        Column("VolumeMode", lambda c: unset(c.spec.volume_mode), priority=1),
    ),
    subresources=(Subresource(name="status", strategy=PersistentVolumeClaimStatusStrategy()),),
    storage_version_hash="QWTyNDq0dC4=",
    returns_deleted_object=True,
)
