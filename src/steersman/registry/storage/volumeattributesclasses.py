"""VolumeAttributesClasses: properties of volumes that can be changed while they are in use."""

from __future__ import annotations

from steersman.api.storage.v1 import VolumeAttributesClass
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


class VolumeAttributesClassStrategy(Strategy[VolumeAttributesClass]):
    pass


VOLUME_ATTRIBUTES_CLASSES = Resource(
    kind=VolumeAttributesClass,
    group="storage.k8s.io",
    plural="volumeattributesclasses",
    namespaced=False,
    short_names=("vac",),
    strategy=VolumeAttributesClassStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(Column("DriverName", lambda c: c.driver_name), AGE),
    returns_deleted_object=True,
    storage_version_hash="tIjydgKBC5w=",
)
