"""Allocation of a node's devices to claims: the first combination that satisfies all claims
(dynamic-resource-allocation).

Devices that several claims could share by capacity are allocated to one claim only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from steersman.api.core.v1 import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from steersman.api.resource.v1 import (
    AllocationResult,
    Device,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceClass,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from steersman.machinery.built_in.taints import is_tolerated
from steersman.machinery.values.quantity import nanos
from steersman.scheduler.devices.qualified_names import qualified
from steersman.scheduler.devices.selectors import SelectionFailed, Selections
from steersman.scheduler.devices.store import DeviceID, DeviceStore, Pool, each_device, is_for

MOST_DEVICES: Final = 32
"""Devices of one claim."""
_MOST_STEPS: Final = 100_000
"""Devices that are tried for the claims of one pod on one node, before the search fails."""


class _Request(Struct, frozen=True):
    """Way to satisfy a request: the request itself, or one of its alternatives."""

    name: str
    main_name: str
    device_class: DeviceClass
    selectors: list[DeviceSelector]
    tolerations: list[DeviceToleration]
    is_for_all: bool
    count: int
    admin_access: bool


class _AllocatedDevice(Struct, frozen=True):
    """Device that a request gets."""

    request: _Request
    id: DeviceID
    device: Device
    slice: ResourceSlice


class _Claim(Struct):
    claim: ResourceClaim
    requests: list[list[_Request]]
    given: list[_AllocatedDevice] = field(default_factory=list)


class Allocator:
    """Search for devices of one node. Raises SelectionFailed if a selector cannot be evaluated."""

    def __init__(self, store: DeviceStore, node: Node, claims: Sequence[ResourceClaim], selections: Selections) -> None:
        self._store = store
        self._selections = selections
        self._node = node
        self._pools = store.pools(node)
        self._claims = [_Claim(claim, self._requests(claim)) for claim in claims]
        self._taken: set[DeviceID] = set()
        self._selected: dict[tuple[DeviceID, int], bool] = {}
        self._steps = 0

    def allocate(self) -> list[AllocationResult] | None:
        """Return the allocation of each claim; None if not all can be satisfied."""
        if not self._satisfy(0, 0):
            return None
        return [self._result(each) for each in self._claims]

    def _requests(self, claim: ResourceClaim) -> list[list[_Request]]:
        requests = []
        for request in claim.spec.devices.requests or ():
            exact = request.exactly
            if exact is not None:
                ways = [
                    self._request(
                        request.name,
                        request.name,
                        exact.device_class_name,
                        exact.selectors,
                        exact.tolerations,
                        exact.allocation_mode,
                        exact.count,
                        admin_access=bool(exact.admin_access),
                    )
                ]
            else:
                ways = [
                    self._request(
                        f"{request.name}/{each.name}",
                        request.name,
                        each.device_class_name,
                        each.selectors,
                        each.tolerations,
                        each.allocation_mode,
                        each.count,
                        admin_access=False,
                    )
                    for each in request.first_available
                ]
            requests.append(ways)
        return requests

    def _request(
        self,
        name: str,
        main_name: str,
        class_name: str,
        selectors: list[DeviceSelector],
        tolerations: list[DeviceToleration],
        mode: str,
        count: int,
        *,
        admin_access: bool,
    ) -> _Request:
        device_class = self._store.classes.get("", class_name)
        if device_class is None:
            raise SelectionFailed(f"request {name}: could not retrieve device class {class_name}")
        return _Request(name, main_name, device_class, selectors, tolerations, mode == "All", count or 1, admin_access)

    # Search

    def _satisfy(self, claim_number: int, request_number: int) -> bool:
        if claim_number == len(self._claims):
            return True
        claim = self._claims[claim_number]
        if request_number == len(claim.requests):
            return self._satisfy(claim_number + 1, 0)
        for request in claim.requests[request_number]:
            if request.is_for_all:
                done = self._allocate_all(claim_number, request_number, request)
            else:
                done = self._allocate_some(claim_number, request_number, request, request.count)
            if done:
                return True
        return False

    def _allocate_some(self, claim_number: int, request_number: int, request: _Request, count: int) -> bool:
        """Give `count` more devices to a request, and satisfy all requests after it.

        Return False if that is impossible.
        """
        if not count:
            return self._satisfy(claim_number, request_number + 1)
        claim = self._claims[claim_number]
        if len(claim.given) + count > MOST_DEVICES:
            return False
        for pool in self._pools:
            if not pool.is_complete:
                continue
            for given in self._candidate_devices(pool, request, claim):
                if not self._fits(claim, given, pool):
                    continue
                self._add(claim, given)
                if self._allocate_some(claim_number, request_number, request, count - 1):
                    return True
                self._remove(claim, given)
        return False

    def _allocate_all(self, claim_number: int, request_number: int, request: _Request) -> bool:
        claim = self._claims[claim_number]
        taken: list[_AllocatedDevice] = []
        for pool in self._pools:
            if not pool.is_complete:
                raise SelectionFailed(
                    f"claim {_name(claim.claim)}, request {request.name}: asks for all devices, "
                    f"but resource pool {pool.driver}/{pool.name} is currently being updated"
                )
            for given in self._candidate_devices(pool, request, claim):
                if len(claim.given) >= MOST_DEVICES or not self._fits(claim, given, pool):
                    self._undo(claim, taken)
                    return False
                self._add(claim, given)
                taken.append(given)
        if taken and self._satisfy(claim_number, request_number + 1):
            return True
        self._undo(claim, taken)
        return False

    def _undo(self, claim: _Claim, taken: list[_AllocatedDevice]) -> None:
        for given in reversed(taken):
            self._remove(claim, given)

    def _candidate_devices(self, pool: Pool, request: _Request, claim: _Claim) -> Iterator[_AllocatedDevice]:
        """Yield the devices of a pool that a request selects."""
        for key, device, each in each_device(pool.slices):
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise SelectionFailed("too many combinations of devices")
            if self._is_selected(request, key, device, each, claim):
                yield _AllocatedDevice(request, key, device, each)

    def _is_selected(
        self, request: _Request, key: DeviceID, device: Device, each: ResourceSlice, claim: _Claim
    ) -> bool:
        known = self._selected.get((key, id(request)))
        if known is None:
            device_class = request.device_class
            is_selected = self._selections.is_selected
            known = (
                (not each.spec.per_device_node_selection or is_for(device, self._node))
                and is_selected(device, key[0], device_class.spec.selectors, f"class {device_class.metadata.name}")
                and is_selected(device, key[0], request.selectors, f"claim {_name(claim.claim)}")
            )
            self._selected[key, id(request)] = known
        return known

    def _fits(self, claim: _Claim, given: _AllocatedDevice, pool: Pool) -> bool:
        """Return True if a device is free and meets taints, constraints and counters."""
        if given.request.admin_access:
            if any(each.id == given.id for each in claim.given):
                return False
        elif given.id in self._taken or self._store.is_allocated(given.id):
            return False
        if any(_prevents(taint, given.request.tolerations) for taint in given.device.taints):
            return False
        return self._is_constrained_well(claim, given) and self._has_counters(given, pool)

    def _is_constrained_well(self, claim: _Claim, given: _AllocatedDevice) -> bool:
        for constraint in claim.claim.spec.devices.constraints:
            same, distinct = constraint.match_attribute, constraint.distinct_attribute
            attribute = same or distinct
            if attribute is None or not _is_meant(given.request, constraint.requests):
                continue
            value = _attribute(given, attribute)
            if value is None:
                return False
            for other in claim.given:
                if not _is_meant(other.request, constraint.requests):
                    continue
                if (_attribute(other, attribute) == value) is (same is None):
                    return False
        return True

    def _has_counters(self, given: _AllocatedDevice, pool: Pool) -> bool:
        """Return True if the shared counters have enough left for a device."""
        if not given.device.consumes_counters:
            return True
        left = {
            (counters.name, name): nanos(counter.value)
            for counters in pool.counters
            for name, counter in (counters.counters or {}).items()
        }
        for key, device, _ in each_device(pool.all_slices):
            if key == given.id or self._store.is_allocated(key) or key in self._taken:
                for consumption in device.consumes_counters:
                    for name, counter in consumption.counters.items():
                        place = consumption.counter_set, name
                        left[place] = left.get(place, 0) - nanos(counter.value)
        return all(amount >= 0 for amount in left.values())

    def _add(self, claim: _Claim, given: _AllocatedDevice) -> None:
        claim.given.append(given)
        if not given.request.admin_access:
            self._taken.add(given.id)

    def _remove(self, claim: _Claim, given: _AllocatedDevice) -> None:
        claim.given.remove(given)
        self._taken.discard(given.id)

    # Result

    def _result(self, claim: _Claim) -> AllocationResult:
        results = [
            DeviceRequestAllocationResult(
                request=each.request.name,
                driver=each.id[0],
                pool=each.id[1],
                device=each.id[2],
                admin_access=True if each.request.admin_access else None,
                tolerations=each.request.tolerations,
                binding_conditions=each.device.binding_conditions,
                binding_failure_conditions=each.device.binding_failure_conditions,
            )
            for each in claim.given
        ]
        devices = DeviceAllocationResult(results=results, config=list(_configurations(claim)))
        return AllocationResult(devices=devices, node_selector=_selector(claim.given, self._node))


def _configurations(claim: _Claim) -> Iterator[DeviceAllocationConfiguration]:
    """Yield the configuration for drivers from device classes and from the claim."""
    chosen = {each.request.main_name: each.request for each in claim.given}
    by_class: dict[str, list[_Request]] = {}
    for request in chosen.values():
        by_class.setdefault(request.device_class.metadata.name, []).append(request)
    for requests in by_class.values():
        for config in requests[0].device_class.spec.config:
            names = [each.name for each in requests]
            yield DeviceAllocationConfiguration(source="FromClass", requests=names, opaque=config.opaque)
    for each in claim.claim.spec.devices.config:
        if not each.requests or any(_is_meant(request, each.requests) for request in chosen.values()):
            yield DeviceAllocationConfiguration(source="FromClaim", requests=each.requests, opaque=each.opaque)


def _selector(given: Sequence[_AllocatedDevice], node: Node) -> NodeSelector | None:
    """Return a selector of the nodes that can use all of the devices; None for all nodes.

    Some devices belong to `node` alone once they are allocated.
    """
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in given:
        where = each.device if each.slice.spec.per_device_node_selection else each.slice.spec
        if where.node_name is not None or each.device.binds_to_node:
            name = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node.metadata.name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[name])])
        selector = where.node_selector
        terms = (selector.node_selector_terms or []) if selector is not None else []
        for term in terms[:1]:
            fields += [field for field in term.match_fields if field not in fields]
            expressions += [each for each in term.match_expressions if each not in expressions]
    if not fields and not expressions:
        return None
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=expressions, match_fields=fields)])


def _is_meant(request: _Request, names: Sequence[str]) -> bool:
    return not names or request.main_name in names or request.name in names


def _attribute(given: _AllocatedDevice, wanted: str) -> DeviceAttribute | None:
    for name, attribute in given.device.attributes.items():
        if "/".join(qualified(name, given.id[0])) == wanted:
            return attribute
    return None


def _prevents(taint: DeviceTaint, tolerations: Sequence[DeviceToleration]) -> bool:
    return taint.effect in ("NoSchedule", "NoExecute") and not is_tolerated(taint, tolerations)


def _name(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
