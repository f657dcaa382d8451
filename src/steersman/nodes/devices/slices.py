"""ResourceSlices that the driver of a simulated node publishes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec.structs import replace

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.api.resource.v1 import CounterSet, Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from steersman.machinery.codec.serializer import encode
from steersman.machinery.selectors import labels

T = TypeVar("T")

SIMULATED: Final = "simulation.steersman.dev/devices"
"""Label of the slices that simulated drivers publish: a digest of all devices of the pool."""
_DIGITS: Final = 32
_MOST_IN_SLICE: Final = 128
"""Devices in a slice."""
_MOST_DETAILED: Final = 64
"""Devices in a slice if one has taints or consumes counters."""
_MOST_COUNTER_SETS: Final = 8
"""Sets of counters in a slice."""
MOST_DEVICES: Final = 4096
"""Devices of all sets together, all of which a node may have."""


class DeviceSet(msgspec.Struct, forbid_unknown_fields=True):
    """Devices that a driver has on each node with some labels, in the terms of a ResourceSlice."""

    driver: Annotated[str, msgspec.Meta(min_length=1)]
    devices: list[Device]
    nodes: str = ""
    """Selector of the labels of nodes."""
    count: Annotated[int, msgspec.Meta(ge=0, le=1024)] | None = None
    """Number of each device, with names `NAME-0`, `NAME-1` and so on; None for one of that name."""
    shared_counters: list[CounterSet] = msgspec.field(name="sharedCounters", default_factory=list)

    @property
    def size(self) -> int:
        """Number of devices on a node."""
        return len(self.devices) * (1 if self.count is None else self.count)


class _Prepared:
    """A set with its devices, which are the same on each node."""

    def __init__(self, of: DeviceSet) -> None:
        self.selector: Final = labels.parse(of.nodes)
        self.driver: Final = of.driver
        self.counters: Final = of.shared_counters
        self.devices: Final = list(devices_of(of))
        self.is_detailed: Final = any(each.taints or each.consumes_counters for each in of.devices)
        self.digest: Final = sha256(encode(of)).digest()


class DeviceSets:
    """Devices of all simulated nodes."""

    def __init__(self, sets: Iterable[DeviceSet] = ()) -> None:
        """Raises SelectorError for an invalid selector."""
        self._sets: Final = [_Prepared(each) for each in sets]
        self.drivers: Final = frozenset(each.driver for each in self._sets)

    def slices_of(self, node: Node) -> list[ResourceSlice]:
        """Return the slices of a node, with generation 0 of its pools."""
        by_driver: dict[str, list[_Prepared]] = {}
        for each in self._sets:
            if each.selector.matches(node.metadata.labels):
                by_driver.setdefault(each.driver, []).append(each)
        return [piece for driver, sets in by_driver.items() for piece in _slices(node, driver, sets)]


def _slices(node: Node, driver: str, sets: Sequence[_Prepared]) -> Iterator[ResourceSlice]:
    devices = [device for each in sets for device in each.devices]
    is_detailed = any(each.is_detailed for each in sets)
    counters = [each for one in sets for each in one.counters]
    # counters and devices are in slices of their own
    parts = [ResourceSliceSpec(shared_counters=some) for some in _parts(counters, _MOST_COUNTER_SETS)]
    parts += [
        ResourceSliceSpec(devices=some) for some in _parts(devices, _MOST_DETAILED if is_detailed else _MOST_IN_SLICE)
    ]
    digest = sha256(b"".join(each.digest for each in sets)).hexdigest()[:_DIGITS]
    name = node.metadata.name
    owner = OwnerReference(api_version="v1", kind="Node", name=name, uid=node.metadata.uid, controller=True)
    for number, spec in enumerate(parts):
        spec.driver, spec.node_name = driver, name
        spec.pool = ResourcePool(name=name, resource_slice_count=len(parts))
        metadata = ObjectMeta(name=f"{name}-{driver}-{number}", labels={SIMULATED: digest}, owner_references=[owner])
        yield ResourceSlice(metadata=metadata, spec=spec)


def _parts(items: Sequence[T], most: int) -> Iterator[list[T]]:
    for first in range(0, len(items), most):
        yield list(items[first : first + most])


def devices_of(of: DeviceSet) -> Iterator[Device]:
    """Yield the devices of a set on each of its nodes."""
    for device in of.devices:
        if of.count is None:
            yield device
        else:
            yield from (replace(device, name=f"{device.name}-{number}") for number in range(of.count))


class SliceChanges(msgspec.Struct, frozen=True):
    """Writes that turn the published slices of a node into others."""

    created: Sequence[ResourceSlice]
    updated: Sequence[ResourceSlice]
    deleted: Sequence[ResourceSlice]


def changes(wanted: Sequence[ResourceSlice], published: Sequence[ResourceSlice]) -> SliceChanges:
    """Return the writes for the slices of a node.

    A pool with a change gets a new generation in all its slices, as upstream requires.
    """
    known = {each.metadata.name: each for each in published}
    names = {each.metadata.name for each in wanted}
    deleted = [each for each in published if each.metadata.name not in names]
    changed = {each.spec.driver for each in deleted}
    changed |= {each.spec.driver for each in wanted if not _is_published(each, known)}
    generations: dict[str, int] = {}
    for each in published:
        driver = each.spec.driver
        generations[driver] = max(generations.get(driver, 0), each.spec.pool.generation)
    created, updated = [], []
    for each in wanted:
        if each.spec.driver not in changed:
            continue
        pool = replace(each.spec.pool, generation=generations.get(each.spec.driver, 0) + 1)
        spec = replace(each.spec, pool=pool)
        before = known.get(each.metadata.name)
        if before is None:
            created.append(replace(each, spec=spec))
        else:
            own = {**before.metadata.labels, SIMULATED: each.metadata.labels[SIMULATED]}
            updated.append(replace(before, metadata=replace(before.metadata, labels=own), spec=spec))
    return SliceChanges(created, updated, deleted)


def _is_published(piece: ResourceSlice, known: Mapping[str, ResourceSlice]) -> bool:
    before = known.get(piece.metadata.name)
    # Only digests are compared, as the server completes what it stores, such as the times of taints.
    return before is not None and before.metadata.labels.get(SIMULATED) == piece.metadata.labels[SIMULATED]
