"""VolumeAttributesClasses: properties of volumes that can change while the volumes are in use."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.storage.v1 import VolumeAttributesClass
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, forbidden
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.validation.drivers import validate_parameters, validate_provisioner
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


class VolumeAttributesClassStrategy(Strategy[VolumeAttributesClass]):
    def validate(self, ctx: Context, attributes_class: VolumeAttributesClass) -> Iterator[FieldError]:
        yield from validate_provisioner(attributes_class.driver_name, Path("driverName"))
        yield from validate_parameters(attributes_class.parameters, Path("parameters"), needed=True)

    def validate_update(
        self, ctx: Context, new: VolumeAttributesClass, old: VolumeAttributesClass
    ) -> Iterator[FieldError]:
        if new.driver_name != old.driver_name:
            yield forbidden(Path("driverName"), "updates to driverName are forbidden.")
        if new.parameters != old.parameters:
            yield forbidden(Path("parameters"), "updates to parameters are forbidden.")
        yield from self.validate(ctx, new)


VOLUME_ATTRIBUTES_CLASSES = Resource(
    kind=built_in(VolumeAttributesClass),
    plural="volumeattributesclasses",
    namespaced=False,
    short_names=("vac",),
    strategy=VolumeAttributesClassStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(Column("DriverName", lambda c: c.driver_name), AGE),
    returns_deleted_object=True,
    storage_version_hash="tIjydgKBC5w=",
)
