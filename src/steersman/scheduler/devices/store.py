"""Cached claims, devices and device classes, with allocations in progress (dra_manager.go)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from steersman.api.core.v1 import Node, NodeSelector
from steersman.api.resource.v1 import AllocationResult, CounterSet, Device, ResourceClaim, ResourceSlice
from steersman.client.informer import Informer, Informers
from steersman.client.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from steersman.machinery.built_in.node_affinity import node_selector
from steersman.scheduler.devices.extended_resources import ClassNames

DeviceID = tuple[str, str, str]
"""Driver, pool and name of a device."""


PoolKey = tuple[str, str]
"""Driver and name of a pool."""


class Pool(Struct):
    """Devices of a driver's pool that a node can use."""

    driver: str
    name: str
    slices: list[ResourceSlice] = field(default_factory=list)
    """Slices of the newest generation that apply to the node."""
    counters: list[CounterSet] = field(default_factory=list)
    all_slices: list[ResourceSlice] = field(default_factory=list)
    is_complete: bool = True

    @property
    def has_binding_conditions(self) -> bool:
        """True if any of its devices has binding conditions."""
        return any(device.binding_conditions for each in self.slices for device in each.spec.devices or ())


class DeviceStore:
    """Cached device objects."""

    def __init__(self, informers: Informers) -> None:
        self.claims = informers.for_resource(RESOURCE_CLAIMS)
        self.slices = informers.for_resource(RESOURCE_SLICES)
        self.classes = informers.for_resource(DEVICE_CLASSES)
        self.all: Final[Sequence[Informer[Any]]] = (self.claims, self.slices, self.classes)
        self._pending: dict[str, AllocationResult] = {}
        self._allocated: dict[DeviceID, int] = {}
        self._by_pool: dict[PoolKey, dict[str, ResourceSlice]] = defaultdict(dict)
        self._of_node: dict[str, Counter[PoolKey]] = defaultdict(Counter)
        """Number of slices of each pool by the node that they name, "" for none."""
        self.class_names: Final = ClassNames()
        self.classes.on_change(self.class_names.changed)
        self.claims.on_change(self._claim_changed)
        self.slices.on_change(self._slice_changed)

    async def synced(self) -> None:
        """Wait until all informers have synced."""
        for informer in self.all:
            await informer.wait_until_synced()

    def set_pending(self, uid: str, allocation: AllocationResult) -> None:
        """Record an allocation in progress."""
        self.remove_pending(uid)
        self._pending[uid] = allocation
        self._count(allocation, 1)

    def remove_pending(self, uid: str) -> None:
        """Drop an allocation in progress, which is written or given up."""
        old = self._pending.pop(uid, None)
        if old is not None:
            self._count(old, -1)

    def is_pending(self, uid: str) -> bool:
        """Return True if an allocation of a claim is in progress."""
        return uid in self._pending

    def is_allocated(self, device: DeviceID) -> bool:
        """Return True if a device is allocated."""
        return device in self._allocated

    def pools(self, node: Node) -> Sequence[Pool]:
        """Return the pools with devices for a node, in order. Pools whose devices have binding conditions come last."""
        found = []
        for driver, name in sorted({*self._of_node.get(node.metadata.name, ()), *self._of_node.get("", ())}):
            slices = self._by_pool[driver, name]
            newest = max(each.spec.pool.generation for each in slices.values())
            current = sorted(
                (each for each in slices.values() if each.spec.pool.generation == newest),
                key=lambda each: each.metadata.name,
            )
            here = [each for each in current if _is_about(each, node)]
            if here:
                pool = Pool(driver, name, here, all_slices=current)
                pool.counters = [counters for each in current for counters in each.spec.shared_counters or ()]
                pool.is_complete = len(current) == current[0].spec.pool.resource_slice_count
                found.append(pool)
        return sorted(found, key=lambda each: each.has_binding_conditions)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and old.status.allocation is not None:
            self._count(old.status.allocation, -1)
        if new is not None and new.status.allocation is not None:
            self._count(new.status.allocation, 1)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        for each in allocation.devices.results:
            if each.admin_access or each.share_id:
                continue
            key = each.driver, each.pool, each.device
            count = self._allocated.get(key, 0) + sign
            if count:
                self._allocated[key] = count
            else:
                self._allocated.pop(key, None)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if old is not None:
            key = _pool_of(old)
            self._by_pool[key].pop(old.metadata.name, None)
            if not self._by_pool[key]:
                del self._by_pool[key]
            self._count_slice(old, key, -1)
        if new is not None:
            key = _pool_of(new)
            self._by_pool[key][new.metadata.name] = new
            self._count_slice(new, key, 1)

    def _count_slice(self, each: ResourceSlice, key: PoolKey, sign: int) -> None:
        node = each.spec.node_name or ""
        pools = self._of_node[node]
        pools[key] += sign
        if not pools[key]:
            del pools[key]
        if not pools:
            del self._of_node[node]


def _pool_of(each: ResourceSlice) -> PoolKey:
    return each.spec.driver, each.spec.pool.name


def _is_about(each: ResourceSlice, node: Node) -> bool:
    spec = each.spec
    if spec.per_device_node_selection:
        return any(is_for(device, node) for device in spec.devices or ())
    return _is_meant(spec.node_name, spec.all_nodes, spec.node_selector, node)


def is_for(device: Device, node: Node) -> bool:
    """Return True if a node can use a device that has a node selection of its own."""
    return _is_meant(device.node_name, device.all_nodes, device.node_selector, node)


def _is_meant(name: str | None, every: bool | None, selector: NodeSelector | None, node: Node) -> bool:
    if name:
        return name == node.metadata.name
    if every:
        return True
    return selector is not None and node_selector(selector)(node.metadata.name, node.metadata.labels)


def each_device(slices: Iterable[ResourceSlice]) -> Iterable[tuple[DeviceID, Device, ResourceSlice]]:
    """Yield the devices of slices in order: ID, device and slice."""
    for each in slices:
        spec = each.spec
        for device in spec.devices or ():
            yield (spec.driver, spec.pool.name, device.name), device, each
