"""Checks of nodes for the resource claims of one pod (plugins/dynamicresources)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from steersman.api.core.v1 import Node, Pod, PodResourceClaim
from steersman.api.resource.v1 import AllocationResult, ResourceClaim
from steersman.machinery.built_in.node_affinity import node_selector
from steersman.machinery.built_in.resource_claims import (
    ClaimNotCreated,
    foreign_claim_message,
    is_generated,
    is_owned_by,
    is_reserved_for,
    name_of,
)
from steersman.scheduler.devices.allocator import Allocator, Steps
from steersman.scheduler.devices.extended_resources import (
    ExtendedClaim,
    extended_claim,
    is_extended_claim_of,
    needed_on,
)
from steersman.scheduler.devices.readiness import is_lost
from steersman.scheduler.devices.selectors import SelectionFailed, Selections
from steersman.scheduler.devices.store import DeviceStore, each_device
from steersman.scheduler.fit.status import DYNAMIC_RESOURCES, Rejection
from steersman.scheduler.state.node_info import NodeInfo

_MOST_CONSUMERS = 256

ELSEWHERE = Rejection(DYNAMIC_RESOURCES, ("resourceclaim not available on the node",))
NOT_ALL = Rejection(DYNAMIC_RESOURCES, ("cannot allocate all claims",))
CANNOT_EXTEND = Rejection(DYNAMIC_RESOURCES, ("cannot schedule extended resource claim",))
IN_USE = Rejection(DYNAMIC_RESOURCES, ("resourceclaim in use",))


class ClaimPlan(Struct, frozen=True):
    """Writes that are due once a node is chosen: the pod's claims, and new allocations."""

    claims: tuple[ResourceClaim, ...]
    allocations: dict[str, AllocationResult]
    """New allocations by the claim's UID."""
    extended: ExtendedClaim | None = None
    """Claim for extended resources, which is to be created."""


class PodClaims:
    """Claims of a pod. `before` is a rejection that holds for every node, or None."""

    def __init__(self, pod: Pod, store: DeviceStore) -> None:
        self._pod = pod
        self._store = store
        self._claims: list[ResourceClaim] = []
        self._selections = Selections()
        self._steps = Steps()
        self._found: dict[str, dict[str, AllocationResult] | str | None] = {}
        """Results of the searches so far by the node's name; a text is the reason for which a search failed."""
        self._unavailable: dict[str, ResourceClaim] = {}
        """Claims whose allocation some node cannot use, by UID."""
        self._extended_resources = store.class_names.requested_by(pod)
        self._extended_claims: dict[tuple[str, ...], ExtendedClaim] = {}
        """Claims for extended resources, by those that a node lacks."""
        self._stale = next(self._stale_claims(), None)
        """Claim for extended resources of an earlier attempt that failed."""
        self.before = self._read()

    def _read(self) -> Rejection | None:
        for each in self._pod.spec.resource_claims:
            found = _claim_of(self._pod, each, self._store)
            if isinstance(found, str):
                return _rejection(found)
            if found is not None:
                self._claims.append(found)
        for claim in self._claims:
            if claim.status.allocation is not None:
                consumers = claim.status.reserved_for
                if len(consumers) >= _MOST_CONSUMERS and not is_reserved_for(claim, self._pod):
                    return IN_USE
            elif self._store.is_pending(claim.metadata.uid):
                name = f"{claim.metadata.namespace}/{claim.metadata.name}"
                return _rejection(f"resource claim {name} is in the process of being allocated")
            else:
                missing = self._missing_class(claim)
                if missing:
                    return _rejection(missing)
        return None

    def _stale_claims(self) -> Iterator[ResourceClaim]:
        if self._extended_resources:
            for each in self._store.claims.list(self._pod.metadata.namespace):
                if is_extended_claim_of(each, self._pod):
                    yield each

    def _missing_class(self, claim: ResourceClaim) -> str:
        for request in claim.spec.devices.requests or ():
            ways = (
                [(request.name, request.exactly.device_class_name)]
                if request.exactly is not None
                else [(f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available]
            )
            for name, class_name in ways:
                if self._store.classes.get("", class_name) is None:
                    return f"request {name}: device class {class_name} does not exist"
        return ""

    async def evaluate(self) -> None:
        """Evaluate the selectors of unallocated claims in a worker thread; to be called before nodes are checked."""
        chains = []
        for claim in self._unallocated():
            for request in claim.spec.devices.requests or ():
                for each in (request.exactly,) if request.exactly is not None else request.first_available:
                    found = self._store.classes.get("", each.device_class_name)
                    chains.append([*(found.spec.selectors if found is not None else ()), *each.selectors])
        for resource in self._extended_resources:
            if (provider := self._store.class_names.class_of(resource)) is not None:
                chains.append([*provider.spec.selectors])
        if any(chains):
            devices = [(device, key[0]) for key, device, _ in each_device(self._store.slices.list())]
            await self._selections.evaluate(devices, chains)

    def _unallocated(self) -> list[ResourceClaim]:
        return [claim for claim in self._claims if claim.status.allocation is None]

    def rejection(self, info: NodeInfo) -> Rejection | None:
        """Return the rejection of a node, or None if it fits."""
        node = info.node
        if node is None:
            return None
        unavailable = [claim for claim in self._claims if _is_unavailable(claim, info.name, node)]
        if self._stale is not None:
            return CANNOT_EXTEND
        if unavailable:
            self._unavailable |= {claim.metadata.uid: claim for claim in unavailable}
            return ELSEWHERE
        try:
            return NOT_ALL if self._allocate(node) is None else None
        except SelectionFailed as error:
            return _rejection(str(error))

    def claim_to_release(self) -> ResourceClaim | None:
        """Return a claim whose allocation keeps the pod off a checked node and that no other pod uses; None if there is
        none.
        """
        if self._stale is not None:
            return self._stale
        for claim in self._unavailable.values():
            users = claim.status.reserved_for
            if not users or (len(users) == 1 and is_reserved_for(claim, self._pod)):
                return claim
        return None

    def plan(self, node: Node) -> ClaimPlan | None:
        """Return what has to be written for a node on which the claims can be satisfied."""
        found = self._allocate(node)
        return None if found is None else ClaimPlan(tuple(self._claims), found, self._extended_on(node))

    def _allocate(self, node: Node) -> dict[str, AllocationResult] | None:
        """Return the allocations of a node by the claim's UID, None if it has none; searched once in an attempt.

        Raises SelectionFailed.
        """
        name = node.metadata.name
        if name not in self._found:
            try:
                self._found[name] = self._search(node)
            except SelectionFailed as error:
                self._found[name] = str(error)
        found = self._found[name]
        if isinstance(found, str):
            raise SelectionFailed(found)
        return found

    def _search(self, node: Node) -> dict[str, AllocationResult] | None:
        needy = self._unallocated()
        if (extended := self._extended_on(node)) is not None:
            needy.append(extended.claim)
        if not needy:
            return {}
        found = Allocator(self._store, node, needy, self._selections, self._steps).allocate()
        return (
            None
            if found is None
            else {claim.metadata.uid: allocation for claim, allocation in zip(needy, found, strict=True)}
        )

    def _extended_on(self, node: Node) -> ExtendedClaim | None:
        """Return the claim for the extended resources that a node does not have itself; None if it has all."""
        lacking = needed_on(node, self._extended_resources) if self._extended_resources else ()
        if not lacking:
            return None
        found = self._extended_claims.get(lacking)
        if found is None:
            found = extended_claim(self._pod, lacking, self._store.class_names.class_of)
            self._extended_claims[lacking] = found
        return found


def _is_unavailable(claim: ResourceClaim, name: str, node: Node) -> bool:
    """Return True if a node, or any node, cannot use the allocation of a claim."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    selector = allocation.node_selector
    return is_lost(claim) or (selector is not None and not node_selector(selector)(name, node.metadata.labels))


def _rejection(reason: str) -> Rejection:
    return Rejection(DYNAMIC_RESOURCES, (reason,))


def missing_claim(pod: Pod, store: DeviceStore) -> str:
    """Return the reason why a pod's claims cannot be used yet; "" if they can."""
    for each in pod.spec.resource_claims:
        found = _claim_of(pod, each, store)
        if isinstance(found, str):
            return found
    return ""


def _claim_of(pod: Pod, given: PodResourceClaim, store: DeviceStore) -> ResourceClaim | str | None:
    """Return the claim that a pod refers to, or the reason why it cannot be used; None if the pod needs none."""
    try:
        name = name_of(pod, given)
    except ClaimNotCreated as error:
        return str(error)
    if name is None:
        return None
    claim = store.claims.get(pod.metadata.namespace, name)
    if claim is None:
        return f'resourceclaim.resource.k8s.io "{name}" not found'
    if claim.metadata.deletion_timestamp:
        return f'resourceclaim "{name}" is being deleted'
    return foreign_claim_message(claim, pod) if is_generated(given) and not is_owned_by(claim, pod) else claim
