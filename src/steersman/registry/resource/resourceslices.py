"""ResourceSlices: devices that a driver offers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.api.resource.v1 import ResourceSlice
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.values import times
from steersman.registry.resource.slice_validation import validate_slice
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(resource_slice: ResourceSlice) -> None:
    """Set the defaults: taints begin now, and devices consume node resources once."""
    set_list_defaults(resource_slice.spec)
    for device in resource_slice.spec.devices or ():
        for mapping in device.node_allocatable_resource_mappings.values():
            if mapping.allocation_multiplier is None:
                mapping.allocation_multiplier = "1"
        for taint in device.taints:
            if taint.time_added is None:
                taint.time_added = times.now()


def set_list_defaults(spec: Any) -> None:
    """Make an empty list None, unless both lists are set; validation refuses that.

    `spec` is a ResourceSliceSpec of any version.
    """
    if spec.shared_counters is None:
        spec.devices = spec.devices or None
    elif spec.devices is None:
        spec.shared_counters = spec.shared_counters or None


def _drop_disabled_fields(resource_slice: ResourceSlice) -> None:
    """Drop the fields of features that are off (DRANodeAllocatableResources, DRAListTypeAttributes)."""
    for device in resource_slice.spec.devices or ():
        device.node_allocatable_resource_mappings = {}
        for attribute in device.attributes.values():
            attribute.bools, attribute.ints, attribute.strings, attribute.versions = [], [], [], []


class ResourceSliceStrategy(Strategy[ResourceSlice]):
    bumps_generation_on = ("spec",)

    def prepare_for_create(self, ctx: Context, resource_slice: ResourceSlice) -> None:
        super().prepare_for_create(ctx, resource_slice)
        _drop_disabled_fields(resource_slice)

    def validate(self, ctx: Context, resource_slice: ResourceSlice) -> Iterator[FieldError]:
        return validate_slice(resource_slice.spec, None)

    def validate_update(self, ctx: Context, new: ResourceSlice, old: ResourceSlice) -> Iterator[FieldError]:
        return validate_slice(new.spec, old.spec)

    def prepare_for_update(self, ctx: Context, new: ResourceSlice, old: ResourceSlice) -> None:
        super().prepare_for_update(ctx, new, old)
        _drop_disabled_fields(new)

    def warnings(self, ctx: Context, resource_slice: ResourceSlice) -> Iterator[str]:
        driver = resource_slice.spec.driver
        if driver != to_lower(driver):
            yield f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters'


RESOURCE_SLICES = Resource(
    kind=built_in(ResourceSlice, default=set_defaults),
    plural="resourceslices",
    namespaced=False,
    strategy=ResourceSliceStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Node", lambda s: s.spec.node_name or ""),
        Column("Driver", lambda s: s.spec.driver),
        Column("Pool", lambda s: s.spec.pool.name),
        AGE,
    ),
    indexed_field="spec.nodeName",
    selectable_fields={
        "spec.nodeName": lambda s: s.spec.node_name or "",
        "spec.driver": lambda s: s.spec.driver,
    },
    unknown_field_label="field label not supported for {1}, Kind=ResourceSlice: {0}",
    returns_deleted_object=True,
    storage_version_hash="KsC072WgaEY=",
)
