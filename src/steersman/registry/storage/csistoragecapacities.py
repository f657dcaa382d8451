"""CSIStorageCapacities: the capacity that a driver can still provide for a class in a part of the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.storage.v1 import CSIStorageCapacity
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.leaves import NOT_NEGATIVE, validate_name
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.selectors import STRICT, LabelSelectorOptions, validate_label_selector
from steersman.machinery.values import quantity
from steersman.registry.columns import CREATED_AT
from steersman.registry.validation.deprecated_labels import selector_warnings
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy


def _validate(capacity: CSIStorageCapacity, options: LabelSelectorOptions) -> Iterator[FieldError]:
    yield from validate_label_selector(capacity.node_topology, Path("nodeTopology"), options)
    yield from validate_name(name_is_dns_subdomain, capacity.storage_class_name, Path("storageClassName"))
    if capacity.capacity is not None and quantity.parse(capacity.capacity).sign < 0:
        yield invalid(Path("capacity"), capacity.capacity, NOT_NEGATIVE)


class CSIStorageCapacityStrategy(Strategy[CSIStorageCapacity]):
    immutable = ("nodeTopology", "storageClassName")
    allow_unconditional_update = False

    def validate(self, ctx: Context, capacity: CSIStorageCapacity) -> Iterator[FieldError]:
        return _validate(capacity, STRICT)

    def validate_update(self, ctx: Context, new: CSIStorageCapacity, old: CSIStorageCapacity) -> Iterator[FieldError]:
        was_invalid = any(True for _ in validate_label_selector(old.node_topology, Path()))
        yield from _validate(new, LabelSelectorOptions(allow_invalid_label_value=was_invalid))
        yield from super().validate_update(ctx, new, old)

    def warnings(self, ctx: Context, capacity: CSIStorageCapacity) -> Iterator[str]:
        return selector_warnings(capacity.node_topology, Path("nodeTopology"))


CSI_STORAGE_CAPACITIES = Resource(
    kind=built_in(CSIStorageCapacity),
    plural="csistoragecapacities",
    strategy=CSIStorageCapacityStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(CREATED_AT,),
    storage_version_hash="xeVl+2Ly1kE=",
)
