"""Controller of ServiceCIDRs: it sets their Ready condition, and keeps deleted ranges in use
(pkg/controller/servicecidrs).
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from typing import Any, Final

from steersman.api.networking.v1 import IPAddress, ServiceCIDR
from steersman.client.client import STRATEGIC_MERGE_PATCH
from steersman.client.errors import ignoring, is_not_found
from steersman.client.events import reference
from steersman.client.informer import new_or_old
from steersman.client.resources import IP_ADDRESSES, SERVICE_CIDRS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.work.yielding import TimeSlice

FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
GRACE: Final = 10.0
"""Seconds during which API servers may not know yet that a range is being deleted."""
_MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
_ALLOCATOR: Final = "ipallocator.k8s.io"
_IN_USE: Final = (
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
)
Block = tuple[int, int, int]
"""A network as a key for lookups: IP version, prefix length, and the bits of the prefix."""


class ServiceCIDRController(Controller[str]):
    """Keeps condition and finalizer of ServiceCIDRs. A key is the name of a ServiceCIDR."""

    name = "service-cidr-controller"
    account = "service-cidrs-controller"
    component = "service-cidr-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._ranges = self.informers.for_resource(SERVICE_CIDRS)
        self._addresses = self.informers.for_resource(IP_ADDRESSES)
        self._terminating: set[str] = set()
        """Names of ranges that are being deleted; a change of another range or of an address may release them."""
        self._ranges.on_change(self._range_changed)
        self._addresses.on_change(self._address_changed)

    def _range_changed(self, old: ServiceCIDR | None, new: ServiceCIDR | None) -> None:
        one = new_or_old(old, new)
        name = one.metadata.name
        self.queue.add(name)
        if new is not None and new.metadata.deletion_timestamp:
            self._terminating.add(name)
        else:
            self._terminating.discard(name)
        if old is None:
            self._enqueue_terminating()

    def _address_changed(self, old: IPAddress | None, new: IPAddress | None) -> None:
        if old is None or new is None:
            self._enqueue_terminating()

    def _enqueue_terminating(self) -> None:
        for each in self._terminating:
            self.queue.add(each)

    async def sync(self, key: str) -> None:
        service_cidr = self._ranges.get("", key)
        if service_cidr is None:
            return
        if service_cidr.metadata.deletion_timestamp:
            await self._finalize(service_cidr)
            return
        if FINALIZER not in service_cidr.metadata.finalizers:
            await self._patch(key, {"finalizers": [FINALIZER]})
        try:
            await self._apply_condition(service_cidr, "True", "", "Kubernetes Service CIDR is ready")
        except StatusError:
            text = "The ServiceCIDR Status can not be set to Ready=True"
            self.recorder.event(reference(SERVICE_CIDRS, service_cidr), "Warning", "KubernetesServiceCIDRError", text)
            raise

    async def _finalize(self, found: ServiceCIDR) -> None:
        """Remove the finalizer of a deleted range that is not in use, after a grace period."""
        name = found.metadata.name
        if await self._is_used(found):
            await self._apply_condition(found, "False", "Terminating", _IN_USE)
            return
        deleted = times.parse(found.metadata.deletion_timestamp or "").timestamp()
        wait = GRACE - (times.unix_now() - deleted)
        if wait > 0:
            self.queue.add_after(name, wait)
        elif FINALIZER in found.metadata.finalizers:
            await self._patch(name, {"$deleteFromPrimitiveList/finalizers": [FINALIZER]})

    async def _is_used(self, found: ServiceCIDR) -> bool:
        """Return True if the range has allocated addresses that no other range contains."""
        others = {
            block
            for each in self._ranges
            if each.metadata.name != found.metadata.name
            for block in network_keys(each.spec.cidrs)
        }
        own = network_keys(found.spec.cidrs)
        if all(is_within(others, *each) for each in own):
            return False
        time_slice = TimeSlice()
        for each in self._addresses:
            await time_slice.pause_if_over()
            if each.metadata.labels.get(_MANAGED_BY) != _ALLOCATOR:
                continue
            address = ip_address(each.metadata.name)
            ip_prefix = address.version, address.max_prefixlen, int(address)
            if is_within(own, *ip_prefix) and not is_within(others, *ip_prefix):
                return True
        return False

    async def _apply_condition(self, found: ServiceCIDR, status: str, reason: str, message: str) -> None:
        """Apply the condition Ready if it has changed."""
        for each in found.status.conditions:
            if each.type == "Ready" and (each.status, each.reason, each.message) == (status, reason, message):
                return
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": times.now(),
        }
        configuration = {
            "kind": "ServiceCIDR",
            "apiVersion": SERVICE_CIDRS.api_version,
            "metadata": {"name": found.metadata.name},
            "status": {"conditions": [condition]},
        }
        await self.client.apply(
            SERVICE_CIDRS, found.metadata.name, "", configuration, manager=self.name, subresource="status"
        )

    async def _patch(self, name: str, metadata: dict[str, Any]) -> None:
        with ignoring(is_not_found):
            await self.client.patch(SERVICE_CIDRS, name, "", {"metadata": metadata}, media=STRATEGIC_MERGE_PATCH)


def network_keys(cidrs: Iterable[str]) -> set[Block]:
    """Return networks as keys for lookups."""
    networks = (ip_network(each) for each in cidrs)
    return {
        (each.version, each.prefixlen, int(each.network_address) >> (each.max_prefixlen - each.prefixlen))
        for each in networks
    }


def is_within(outer: set[Block], version: int, length: int, bits: int) -> bool:
    """Return True if a network (or an address, as one of full length) is within one of `outer`. Each length costs a
    lookup.
    """
    return any((version, shorter, bits >> (length - shorter)) in outer for shorter in range(length + 1))
