"""StorageClasses: how volumes of a kind are made."""

from __future__ import annotations

from steersman.api.storage.v1 import StorageClass
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(storage_class: StorageClass) -> None:
    """Volumes go with their claims, and are made at once."""
    if storage_class.reclaim_policy is None:
        storage_class.reclaim_policy = "Delete"
    if storage_class.volume_binding_mode is None:
        storage_class.volume_binding_mode = "Immediate"


class StorageClassStrategy(Strategy[StorageClass]):
    pass


STORAGE_CLASSES = Resource(
    kind=StorageClass,
    group="storage.k8s.io",
    plural="storageclasses",
    namespaced=False,
    short_names=("sc",),
    strategy=StorageClassStrategy(),
    name_validator=name_is_dns_subdomain,
    default=set_defaults,
    columns=(
        Column("Provisioner", lambda c: c.provisioner),
        Column("ReclaimPolicy", lambda c: "Delete" if c.reclaim_policy is None else c.reclaim_policy),
        Column("VolumeBindingMode", lambda c: "Immediate" if c.volume_binding_mode is None else c.volume_binding_mode),
        Column("AllowVolumeExpansion", lambda c: bool(c.allow_volume_expansion)),
        AGE,
    ),
    returns_deleted_object=True,
    storage_version_hash="K+m6uJwbjGY=",
)
