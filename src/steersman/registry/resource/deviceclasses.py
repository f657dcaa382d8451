"""DeviceClasses: devices that have something in common, and how they are set up."""

from __future__ import annotations

from steersman.api.resource.v1 import DeviceClass
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy


class DeviceClassStrategy(Strategy[DeviceClass]):
    def prepare_for_create(self, ctx: Context, device_class: DeviceClass) -> None:
        device_class.metadata.generation = 1

    def prepare_for_update(self, ctx: Context, new: DeviceClass, old: DeviceClass) -> None:
        if new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1


DEVICE_CLASSES = Resource(
    kind=DeviceClass,
    group="resource.k8s.io",
    plural="deviceclasses",
    namespaced=False,
    strategy=DeviceClassStrategy(),
    name_validator=name_is_dns_subdomain,
    returns_deleted_object=True,
    storage_version_hash="Yk2PTc1Ybxk=",
)
