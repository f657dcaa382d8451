"""PersistentVolumes: pieces of storage in the cluster, bound to claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

import msgspec

from steersman.api.core.v1 import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.built_in.classes import STORAGE_CLASS, storage_class_of
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid
from steersman.machinery.validation.formats import is_valid_label_value
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_immutable
from steersman.machinery.validation.object_meta import name_is_dns_subdomain, validate_new_metadata
from steersman.machinery.values.times import now
from steersman.registry.persistent_volume.defaults import set_persistent_source_defaults
from steersman.registry.persistent_volume.sources import SOURCE_ATTRIBUTES
from steersman.registry.persistent_volume.validation import validate_volume_spec
from steersman.registry.printing.internal_form import internal_diff, internal_form
from steersman.registry.validation.deprecated_labels import DEPRECATED as DEPRECATED_NODE_LABELS
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import MetadataChecks, Strategy

MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
"""The annotation that preceded `spec.mountOptions`."""

_SPEC: Final = Path("spec")
_MOUNTABLE: Final = (
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azure_file",
    "vsphere_volume",
    "azure_disk",
    "photon_persistent_disk",
)
"""Sources that accept mount options by annotation."""

_GA_LABELS: Final = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""Deprecated labels of nodes and their successors."""
_SOURCE_WARNINGS: Final = (
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photon_persistent_disk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scale_io", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)


def _validate_mount_options(volume: PersistentVolume) -> Iterator[FieldError]:
    if MOUNT_OPTIONS in volume.metadata.annotations and not any(getattr(volume.spec, name) for name in _MOUNTABLE):
        path = Path("metadata", "annotations", MOUNT_OPTIONS)
        yield forbidden(path, "may not specify mount options for this volume type")


_JSON_NAMES: Final = dict(
    zip(PersistentVolumeSpec.__struct_fields__, PersistentVolumeSpec.__struct_encode_fields__, strict=True)
)
_Sources: Final = msgspec.defstruct(
    "_Sources",
    [(name, Any, msgspec.field(default=None, name=_JSON_NAMES[name])) for name in SOURCE_ATTRIBUTES],
)
"""The sources of a spec alone, in the form that upstream's messages print."""


def _sources(spec: PersistentVolumeSpec) -> msgspec.Struct:
    return _Sources(*(getattr(spec, name) for name in SOURCE_ATTRIBUTES))


def _validate_source_update(new: PersistentVolumeSpec, old: PersistentVolumeSpec) -> Iterator[FieldError]:
    """Forbid changes of the source, except adding an expansion secret to a CSI source."""
    changed = new
    if (
        old.csi is not None
        and old.csi.controller_expand_secret_ref is None
        and new.csi is not None
        and new.csi.controller_expand_secret_ref is not None
    ):
        csi = msgspec.structs.replace(new.csi, controller_expand_secret_ref=None)
        changed = msgspec.structs.replace(new, csi=csi)
    if any(getattr(changed, name) != getattr(old, name) for name in SOURCE_ATTRIBUTES):
        difference = internal_diff(_sources(old), _sources(changed))
        detail = f"spec.persistentvolumesource is immutable after creation\n{difference}"
        yield forbidden(_SPEC / "persistentvolumesource", detail)


def _terms(affinity: VolumeNodeAffinity) -> Sequence[NodeSelectorTerm]:
    return () if affinity.required is None else affinity.required.node_selector_terms or ()


def _same_terms(new: VolumeNodeAffinity, old: VolumeNodeAffinity) -> bool:
    """Return True if only keys changed, each from a beta label to its successor.

    An empty key counts as the successor of any key.
    """
    terms = list(zip_longest(_terms(new), _terms(old)))
    return all(a and b and _same_requirements(a, b) for a, b in terms)


def _same_requirements(new: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    lists = ((new.match_expressions, old.match_expressions), (new.match_fields, old.match_fields))
    return all(
        a is not None and b is not None and _same_requirement(a, b) for pair in lists for a, b in zip_longest(*pair)
    )


def _same_requirement(new: NodeSelectorRequirement, old: NodeSelectorRequirement) -> bool:
    same_key = new.key == old.key or new.key == _GA_LABELS.get(old.key, "")
    return same_key and (new.operator, new.values) == (old.operator, old.values)


def _validate_affinity_update(new: VolumeNodeAffinity | None, old: VolumeNodeAffinity | None) -> Iterator[FieldError]:
    if old is None or new == old:
        return
    if new is None or not _same_terms(new, old):
        detail = f"{FIELD_IMMUTABLE}, except for updating from beta label to GA"
        yield invalid(Path("nodeAffinity"), internal_form(new), detail)


def _has_invalid_value(spec: PersistentVolumeSpec) -> bool:
    """Return True if a stored affinity has a value that would be refused today."""
    selector = spec.node_affinity.required if spec.node_affinity is not None else None
    if selector is None:
        return False
    return any(
        is_valid_label_value(value)
        for term in selector.node_selector_terms or ()
        for expression in term.match_expressions
        for value in expression.values
    )


class PersistentVolumeStrategy(Strategy[PersistentVolume]):
    metadata_on_update: MetadataChecks = "once"
    resets = ("status",)

    def prepare_for_create(self, ctx: Context, obj: PersistentVolume) -> None:
        obj.status = PersistentVolumeStatus(phase="Pending", last_phase_transition_time=now())

    def validate(self, ctx: Context, obj: PersistentVolume) -> Iterator[FieldError]:
        yield from validate_volume_spec(obj.spec, obj.metadata.name)
        yield from _validate_mount_options(obj)

    def warnings(self, ctx: Context, obj: PersistentVolume) -> Iterator[str]:
        return _warnings(obj)

    def validate_update(self, ctx: Context, new: PersistentVolume, old: PersistentVolume) -> Iterator[FieldError]:
        check_values = not _has_invalid_value(old.spec)
        # Upstream validates all of the volume twice, and clients see every cause twice.
        faults = [
            *validate_new_metadata(new.metadata, namespaced=False, name_validator=name_is_dns_subdomain),
            *validate_volume_spec(new.spec, new.metadata.name, check_values=check_values),
        ]
        yield from faults
        yield from _validate_mount_options(new)
        yield from faults
        yield from _validate_source_update(new.spec, old.spec)
        yield from validate_immutable(new.spec.volume_mode, old.spec.volume_mode, Path("volumeMode"))
        yield from _validate_affinity_update(new.spec.node_affinity, old.spec.node_affinity)
        if old.spec.volume_attributes_class_name is not None and new.spec.volume_attributes_class_name is None:
            yield forbidden(_SPEC / "volumeAttributesClassName", "update from non-nil value to nil is forbidden")


class PersistentVolumeStatusStrategy(PersistentVolumeStrategy):
    metadata_on_update = "finalizers"
    resets = ("spec",)

    def prepare_for_update(self, ctx: Context, new: PersistentVolume, old: PersistentVolume) -> None:
        super().prepare_for_update(ctx, new, old)
        before, after = old.status.last_phase_transition_time, new.status.last_phase_transition_time
        if new.status.phase == old.status.phase:
            if after is None:
                new.status.last_phase_transition_time = before
        elif after is None or after == before:
            new.status.last_phase_transition_time = now()

    def validate_update(self, ctx: Context, new: PersistentVolume, old: PersistentVolume) -> Iterator[FieldError]:
        return iter(())

    def warnings_on_update(self, ctx: Context, new: PersistentVolume, old: PersistentVolume) -> Iterator[str]:
        return iter(())


def _warnings(volume: PersistentVolume) -> Iterator[str]:
    annotations, spec = volume.metadata.annotations, volume.spec
    if STORAGE_CLASS in annotations:
        yield f'metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
    if MOUNT_OPTIONS in annotations:
        yield f'metadata.annotations[{MOUNT_OPTIONS}]: deprecated since v1.31; use "mountOptions" attribute instead'
    if spec.persistent_volume_reclaim_policy == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    if spec.node_affinity is not None and spec.node_affinity.required is not None:
        path = _SPEC.child("nodeAffinity", "required", "nodeSelectorTerms")
        for index, term in enumerate(spec.node_affinity.required.node_selector_terms or ()):
            for place, expression in enumerate(term.match_expressions):
                if text := DEPRECATED_NODE_LABELS.get(expression.key):
                    yield f"{path[index].child('matchExpressions')[place] / 'key'}: {expression.key} is {text}"
    for attribute, name, text in _SOURCE_WARNINGS:
        if getattr(spec, attribute) is not None:
            yield f"{_SPEC / name}: {text}"


def default_persistent_volume(volume: PersistentVolume) -> None:
    """Set the defaults of SetDefaults_PersistentVolume and of its source."""
    spec = volume.spec
    volume.status.phase = volume.status.phase or "Pending"
    spec.persistent_volume_reclaim_policy = spec.persistent_volume_reclaim_policy or "Retain"
    if spec.volume_mode is None:
        spec.volume_mode = "Filesystem"
    set_persistent_source_defaults(spec)


_SHORT_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def access_modes_text(modes: Sequence[str]) -> str:
    """Return access modes in the short form of Tables, e.g. "RWO,ROX"."""
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def phase_text(obj: Any) -> str:
    """Return the phase of a volume or claim for Tables."""
    return "Terminating" if obj.metadata.deletion_timestamp else str(obj.status.phase)


def unset(text: str | None) -> str:
    """Return the cell of an optional text."""
    return "<unset>" if text is None else text


def _claim(volume: PersistentVolume) -> str:
    claim = volume.spec.claim_ref
    return f"{claim.namespace}/{claim.name}" if claim is not None else ""


PERSISTENT_VOLUMES: Final = Resource(
    kind=built_in(PersistentVolume, default=default_persistent_volume),
    plural="persistentvolumes",
    namespaced=False,
    short_names=("pv",),
    strategy=PersistentVolumeStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Capacity", lambda v: v.spec.capacity.get("storage", "0")),
        Column("Access Modes", lambda v: access_modes_text(v.spec.access_modes)),
        Column("Reclaim Policy", lambda v: v.spec.persistent_volume_reclaim_policy),
        Column("Status", phase_text),
        Column("Claim", _claim),
        Column("StorageClass", storage_class_of, description="StorageClass of the pv"),
        Column(
            "VolumeAttributesClass",
            lambda v: unset(v.spec.volume_attributes_class_name),
            description="VolumeAttributesClass of the pv",
        ),
        Column("Reason", lambda v: v.status.reason),
        AGE,
        Column("VolumeMode", lambda v: unset(v.spec.volume_mode), priority=1),
    ),
    subresources=(Subresource(name="status", strategy=PersistentVolumeStatusStrategy()),),
    storage_version_hash="HN/zwEC+JgM=",
    returns_deleted_object=True,
)
