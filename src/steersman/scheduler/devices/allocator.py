"""Allocation of a node's devices to claims: the first combination that satisfies all claims
(dynamic-resource-allocation).

Devices that several claims could share by capacity are allocated to one claim only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

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
MOST_STEPS: Final = 20_000
"""Devices that an attempt to schedule a pod tries again, on all nodes together, before its searches fail."""


class Steps:
    """Budget for the searches of one attempt to schedule a pod, on all nodes.

    The first try of a device for a request costs nothing, so that each node is searched once in any case. Combinations
    of devices beyond that are paid from the budget. kube-scheduler has a time limit instead, after which it gives the
    attempt up.
    """

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.left = most

    def take(self) -> None:
        """Pay for one step. Raises SelectionFailed if nothing is left."""
        if not self.left:
            raise SelectionFailed("too many combinations of devices")
        self.left -= 1


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


class _Candidate(NamedTuple):
    pool: Pool
    device: _AllocatedDevice


class _Candidates:
    """Devices for a request, found one by one: an error in a selector counts only if the search gets so far."""

    def __init__(self, found: Iterator[_Candidate], steps: Steps) -> None:
        self._found: list[_Candidate] = []
        self._rest = found
        self._steps = steps

    def since(self, index: int) -> Iterator[tuple[int, _Candidate]]:
        """Yield the candidates from an index on, with their indexes. Raises SelectionFailed."""
        while True:
            if index < len(self._found):
                self._steps.take()
            elif (following := next(self._rest, None)) is not None:
                self._found.append(following)
            else:
                return
            yield index, self._found[index]
            index += 1


class _Counters:
    """Shared counters of a pool, with all allocated devices and those of the search subtracted."""

    def __init__(self, pool: Pool, is_used: Callable[[DeviceID], bool]) -> None:
        self._left: dict[tuple[str, str], int] = {
            (counters.name, name): nanos(counter.value)
            for counters in pool.counters
            for name, counter in (counters.counters or {}).items()
        }
        for key, device, _ in each_device(pool.all_slices):
            if is_used(key):
                self.use(device, 1)

    def use(self, device: Device, sign: int) -> None:
        """Subtract what a device consumes, or with a `sign` of -1 add it again."""
        for place, amount in _consumption(device):
            self._left[place] = self._left.get(place, 0) - sign * amount

    def has(self, device: Device, *, is_used: bool) -> bool:
        """Return True if no counter is overdrawn with a device, which may be used already."""
        if not is_used:
            self.use(device, 1)
        try:
            return all(amount >= 0 for amount in self._left.values())
        finally:
            if not is_used:
                self.use(device, -1)


def _consumption(device: Device) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield counter set and name of the counters that a device consumes, with the amounts in billionths."""
    for each in device.consumes_counters:
        for name, counter in each.counters.items():
            yield (each.counter_set, name), nanos(counter.value)


class Allocator:
    """Search for devices of one node. Raises SelectionFailed if a selector cannot be evaluated, or no steps are left."""

    def __init__(
        self,
        store: DeviceStore,
        node: Node,
        claims: Sequence[ResourceClaim],
        selections: Selections,
        steps: Steps,
    ) -> None:
        self._store = store
        self._selections = selections
        self._node = node
        self._pools = store.pools(node)
        self._claims = [_Claim(claim, self._requests(claim)) for claim in claims]
        self._taken: set[DeviceID] = set()
        self._steps = steps
        self._candidates: dict[int, _Candidates] = {}
        """Candidates by the identity of the request."""
        self._counters: dict[int, _Counters] = {}
        """Counters by the identity of the pool."""

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

    def _allocate_some(
        self, claim_number: int, request_number: int, request: _Request, count: int, first: int = 0
    ) -> bool:
        """Give `count` more devices to a request, the candidate `first` or later ones, and satisfy all requests after
        it.

        Return False if that is impossible. Combinations are tried, not permutations: a set of devices fits in each of
        its orders or in none.
        """
        if not count:
            return self._satisfy(claim_number, request_number + 1)
        claim = self._claims[claim_number]
        if len(claim.given) + count > MOST_DEVICES:
            return False
        candidates = self._candidates_of(claim, request)
        for index, (pool, given) in candidates.since(first):
            if not self._fits(claim, given, pool):
                continue
            self._add(claim, given, pool)
            if self._allocate_some(claim_number, request_number, request, count - 1, index + 1):
                return True
            self._remove(claim, given, pool)
            if count > 1 and not self._enough_fit(claim, candidates, index + 1, count):
                return False
        return False

    def _enough_fit(self, claim: _Claim, candidates: _Candidates, first: int, count: int) -> bool:
        """Return True if `count` candidates from `first` on fit now. With more devices taken not more of them fit."""
        fitting = (True for _, (pool, given) in candidates.since(first) if self._fits(claim, given, pool))
        return sum(islice(fitting, count)) == count

    def _allocate_all(self, claim_number: int, request_number: int, request: _Request) -> bool:
        claim = self._claims[claim_number]
        taken: list[_Candidate] = []
        for _, (pool, given) in self._candidates_of(claim, request).since(0):
            is_free = len(claim.given) < MOST_DEVICES and self._is_free(given)
            if not is_free or not self._fits(claim, given, pool):
                self._undo(claim, taken)
                return False
            self._add(claim, given, pool)
            taken.append(_Candidate(pool, given))
        if taken and self._satisfy(claim_number, request_number + 1):
            return True
        self._undo(claim, taken)
        return False

    def _undo(self, claim: _Claim, taken: list[_Candidate]) -> None:
        for pool, given in reversed(taken):
            self._remove(claim, given, pool)

    def _candidates_of(self, claim: _Claim, request: _Request) -> _Candidates:
        found = self._candidates.get(id(request))
        if found is None:
            devices = self._all_devices(claim, request) if request.is_for_all else self._free_devices(claim, request)
            found = self._candidates[id(request)] = _Candidates(devices, self._steps)
        return found

    def _free_devices(self, claim: _Claim, request: _Request) -> Iterator[_Candidate]:
        """Yield the free devices that a request selects. Raises SelectionFailed."""
        for pool in self._pools:
            for key, device, each in each_device(pool.slices) if pool.is_complete else ():
                given = _AllocatedDevice(request, key, device, each)
                if self._is_free(given) and self._is_selected(given, claim):
                    yield _Candidate(pool, given)

    def _all_devices(self, claim: _Claim, request: _Request) -> Iterator[_Candidate]:
        """Yield all devices that a request selects, free or not. Raises SelectionFailed."""
        for pool in self._pools:
            if not pool.is_complete:
                raise SelectionFailed(
                    f"claim {_name(claim.claim)}, request {request.name}: asks for all devices, "
                    f"but resource pool {pool.driver}/{pool.name} is currently being updated"
                )
            for key, device, each in each_device(pool.slices):
                given = _AllocatedDevice(request, key, device, each)
                if self._is_selected(given, claim):
                    yield _Candidate(pool, given)

    def _is_selected(self, given: _AllocatedDevice, claim: _Claim) -> bool:
        request, device, driver = given.request, given.device, given.id[0]
        device_class = request.device_class
        is_selected = self._selections.is_selected
        return (
            (not given.slice.spec.per_device_node_selection or is_for(device, self._node))
            and is_selected(device, driver, device_class.spec.selectors, f"class {device_class.metadata.name}")
            and is_selected(device, driver, request.selectors, f"claim {_name(claim.claim)}")
        )

    def _is_free(self, given: _AllocatedDevice) -> bool:
        """Return True if no other pod's claim has a device, and its taints are tolerated."""
        if not given.request.admin_access and self._store.is_allocated(given.id):
            return False
        return not any(_prevents(taint, given.request.tolerations) for taint in given.device.taints)

    def _fits(self, claim: _Claim, given: _AllocatedDevice, pool: Pool) -> bool:
        """Return True if a free device is not taken by this search, and meets constraints and counters."""
        if given.request.admin_access:
            if any(each.id == given.id for each in claim.given):
                return False
        elif given.id in self._taken:
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

    def _is_used(self, device: DeviceID) -> bool:
        return device in self._taken or self._store.is_allocated(device)

    def _has_counters(self, given: _AllocatedDevice, pool: Pool) -> bool:
        """Return True if the shared counters have enough left for a device."""
        if not given.device.consumes_counters:
            return True
        counters = self._counters.get(id(pool))
        if counters is None:
            counters = self._counters[id(pool)] = _Counters(pool, self._is_used)
        return counters.has(given.device, is_used=self._is_used(given.id))

    def _add(self, claim: _Claim, given: _AllocatedDevice, pool: Pool) -> None:
        claim.given.append(given)
        if not given.request.admin_access:
            self._taken.add(given.id)
            self._count(given, pool, 1)

    def _remove(self, claim: _Claim, given: _AllocatedDevice, pool: Pool) -> None:
        claim.given.remove(given)
        if not given.request.admin_access:
            self._taken.discard(given.id)
            self._count(given, pool, -1)

    def _count(self, given: _AllocatedDevice, pool: Pool, sign: int) -> None:
        if (counters := self._counters.get(id(pool))) is not None:
            counters.use(given.device, sign)

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
