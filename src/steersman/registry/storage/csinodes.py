"""CSINodes: the storage drivers on a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.storage.v1 import CSINode, CSINodeDriver
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.validation.formats import byte_length, is_qualified_name
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_nonnegative, validate_unique, validate_with
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.validation.drivers import validate_driver_name
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

MAX_NODE_ID: Final = 256


def _validate(node: CSINode) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, driver in enumerate(node.spec.drivers or ()):
        path = Path("spec", "drivers")[index]
        yield from validate_driver_name(driver.name, path / "name")
        if not driver.node_id:
            yield required(path / "nodeID")
        if byte_length(driver.node_id) > MAX_NODE_ID:
            yield invalid(path / "nodeID", driver.node_id, f"must be {MAX_NODE_ID} characters or less")
        if driver.allocatable is not None and driver.allocatable.count is not None:
            yield from validate_nonnegative(driver.allocatable.count, path.child("allocatable", "count"))
        yield from validate_unique(driver.name, seen, path / "name")
        yield from _validate_topology_keys(driver.topology_keys or [], path)


def _validate_topology_keys(keys: list[str], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for key in keys:
        if not key:
            yield required(path)
        yield from validate_unique(key, seen, path)
        yield from validate_with(is_qualified_name, key, path)


def _fixed(driver: CSINodeDriver) -> CSINodeDriver:
    """Return the immutable part of a driver; missing topology keys equal an empty list."""
    return replace(driver, allocatable=None, topology_keys=driver.topology_keys or None)


class CSINodeStrategy(Strategy[CSINode]):
    allow_unconditional_update = False

    def validate(self, ctx: Context, node: CSINode) -> Iterator[FieldError]:
        return _validate(node)

    def validate_update(self, ctx: Context, new: CSINode, old: CSINode) -> Iterator[FieldError]:
        yield from _validate(new)
        by_name: dict[str, list[CSINodeDriver]] = {}
        for driver in new.spec.drivers or ():
            by_name.setdefault(driver.name, []).append(driver)
        for before in old.spec.drivers or ():
            for driver in by_name.pop(before.name, ()):
                fixed = _fixed(driver)
                if fixed != _fixed(before):
                    yield invalid(Path("spec", "drivers"), internal_text(fixed), FIELD_IMMUTABLE)


CSI_NODES = Resource(
    kind=built_in(CSINode),
    plural="csinodes",
    namespaced=False,
    strategy=CSINodeStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column(
            "Drivers",
            lambda n: len(n.spec.drivers or ()),
            type="integer",
            description="Drivers indicates the number of CSI drivers registered on the node",
        ),
        AGE,
    ),
    returns_deleted_object=True,
    storage_version_hash="Pe62DkZtjuo=",
)
