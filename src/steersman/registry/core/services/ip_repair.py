"""Brings the addresses of Services and the IPAddress objects that stand for them together again.

A service's address may have lost its object, and an object its service: after a crash between the two writes, or
because somebody changed one of them. Follows pkg/registry/core/service/ipallocator/controller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final

from steersman.api.core.v1 import Service
from steersman.api.networking.v1 import IPAddress
from steersman.machinery.errors.status import StatusError
from steersman.machinery.validation.ip import parse_ip_sloppy
from steersman.machinery.values import times
from steersman.registry.core.services.cluster_ips import (
    ALLOCATOR,
    FAMILY_LABEL,
    GROUP,
    MANAGED_BY_LABEL,
    AddressError,
    ClusterIPs,
)
from steersman.registry.core.services.fields import NONE, needs_cluster_ip
from steersman.registry.core.services.repair_events import RepairEvents, reference_to
from steersman.registry.services import Services
from steersman.work.yielding import TimeSlice

logger = logging.getLogger(__name__)

GRACE: Final = 60.0
"""Seconds that an address may be without its service: as long as a request that makes the service may take."""

_CONTROLLER: Final = "ipallocator-repair-controller"


class ServiceIPRepair:
    """Looks at services and addresses that changed (`service_changed`, `address_changed`), or at all of them."""

    def __init__(self, services: Services, *, clock: Callable[[], float] = times.monotonic) -> None:
        """`clock` gives seconds, and does not jump: an address that is being given to a service must not seem old."""
        self._objects = services.objects
        self._cluster_ips = ClusterIPs(services)
        self._clock = clock
        self._events = RepairEvents(services, _CONTROLLER, clock)
        self._services: dict[tuple[str, str], None] = {}
        self._addresses: dict[str, None] = {}
        self._alone: dict[str, tuple[str, float]] = {}
        """Addresses without a service: the UID of each, and when it was first seen so."""

    def service_changed(self, namespace: str, name: str) -> None:
        """Has the service looked at by the next `run`."""
        self._services[namespace, name] = None

    def address_changed(self, name: str) -> None:
        """Has the address looked at by the next `run`."""
        self._addresses[name] = None

    def everything_changed(self) -> None:
        """Has all of them looked at by the next `run`."""
        for namespace, name in self._objects("", "services").names():
            self.service_changed(namespace, name)
        for _, name in self._objects(GROUP, "ipaddresses").names():
            self.address_changed(name)

    async def run(self) -> None:
        """Looks at what changed, and at the addresses that were not without a service for long.

        What cannot be repaired is logged, and is looked at again with everything.
        """
        self._addresses |= dict.fromkeys(self._alone)
        if self._services or self._addresses:
            await self._catch_up()
        time_slice = TimeSlice()
        while self._services or self._addresses:
            try:
                if self._services:
                    await self._look_at_service(*self._services.popitem()[0])
                else:
                    await self._look_at_address(self._addresses.popitem()[0])
            except (AddressError, StatusError) as error:
                logger.warning("an address could not be repaired: %s", error)
            await time_slice.pause_if_over()

    async def _catch_up(self) -> None:
        """Has the caches show both writes of whoever has made a service, on another server too. Raises StatusError."""
        await self._objects("", "services").catch_up()
        await self._objects(GROUP, "ipaddresses").catch_up()

    async def _look_at_service(self, namespace: str, name: str) -> None:
        """Every address of a service has an object that names the service."""
        service: Service | None = await self._objects("", "services").find(namespace, name)
        if service is None or not needs_cluster_ip(service) or service.spec.cluster_ip in ("", NONE):
            return
        ranges = await self._cluster_ips.ranges(ready=False)
        for text in service.spec.cluster_ips:
            address = parse_ip_sloppy(text)
            if address is None:
                note = f"Cluster IP {text} is not a valid IP; please recreate Service"
                await self._tell(service, "ClusterIPNotValid", "ClusterIPValidation", note)
                continue
            shown = f"[IPv{address.version}]: {address}"
            if not any(address in network for network in ranges):
                note = f"Cluster IP {shown} is not within any configured Service CIDR; please recreate service"
                await self._tell(service, "ClusterIPOutOfRange", "ClusterIPAllocation", note)
                continue
            await self._look_at_pair(service, str(address), shown)

    async def _look_at_pair(self, service: Service, address: str, shown: str) -> None:
        """The object of one address of a service."""
        metadata = service.metadata
        addresses = self._objects(GROUP, "ipaddresses")
        found: IPAddress | None = await addresses.find("", address)
        if found is None or not _is_for(found, service):
            await self._catch_up()  # it is written before its service, but may be seen after it
            now: Service | None = await self._objects("", "services").find(metadata.namespace, metadata.name)
            if now is None or address not in now.spec.cluster_ips:
                return
            found = await addresses.find("", address)
        if found is None:
            note = f"Cluster IP {shown} is not allocated; repairing"
            await self._tell(service, "ClusterIPNotAllocated", "ClusterIPAllocation", note)
            await self._cluster_ips.hold(metadata.namespace, metadata.name, ip_address(address))
            return
        parent = found.spec.parent_ref
        wrong = parent is None or parent.group != "" or parent.resource != "services"
        if not wrong and parent is not None and (parent.namespace, parent.name) != (metadata.namespace, metadata.name):
            other: Service | None = await self._objects("", "services").find(parent.namespace, parent.name)
            if other is not None and address in other.spec.cluster_ips:
                note = f"Cluster IP {shown.replace(' ', '')} was assigned to multiple services; please recreate service"
                await self._tell(service, "ClusterIPAlreadyAllocated", "ClusterIPAllocation", note)
                return
            wrong = True
        if wrong:
            whose = f"the ClusterIP {shown} for Service {metadata.namespace}/{metadata.name}"
            note = f"{whose} has a wrong reference; repairing"
            await self._tell(service, "ClusterIPNotAllocated", "ClusterIPAllocation", note)
        labels = found.metadata.labels
        family = f"IPv{6 if ':' in address else 4}"
        if wrong or labels.get(MANAGED_BY_LABEL) != ALLOCATOR or labels.get(FAMILY_LABEL) != family:
            await self._cluster_ips.release(address)
            await self._cluster_ips.hold(metadata.namespace, metadata.name, ip_address(address))

    async def _look_at_address(self, name: str) -> None:
        """An address that was made for a service is one of its addresses."""
        uid, since = self._alone.pop(name, ("", 0.0))
        address: IPAddress | None = await self._objects(GROUP, "ipaddresses").find("", name)
        if address is None or address.metadata.labels.get(MANAGED_BY_LABEL) != ALLOCATOR:
            return
        parent = address.spec.parent_ref
        if parent is None or parent.group != "" or parent.resource != "services":
            note = f"IPAddress {name} appears to have been modified, not referencing a Service: cleaning up"
            await self._take_back(address, "IPAddressNotAllocated", note)
            return
        service: Service | None = await self._objects("", "services").find(parent.namespace, parent.name)
        if service is not None and name in service.spec.cluster_ips:
            return
        if uid != address.metadata.uid:
            uid, since = address.metadata.uid, self._clock()
        if self._clock() - since <= GRACE:
            self._alone[name] = uid, since  # its service may be on the way
            return
        whose = f"IPAddress: {name} for Service {parent.namespace}/{parent.name}"
        if service is None:
            await self._take_back(address, "IPAddressNotAllocated", f"{whose} appears to have leaked: cleaning up")
        else:
            await self._take_back(address, "IPAddressWrongReference", f"{whose} has a wrong reference; cleaning up")

    async def _take_back(self, address: IPAddress, reason: str, note: str) -> None:
        await self._tell(address, reason, "IPAddressAllocation", note)
        await self._cluster_ips.release(address.metadata.name)

    async def _tell(self, obj: Any, reason: str, action: str, note: str) -> None:
        """Makes an Event about a service or an address, and a line in the log."""
        kind, version = ("Service", "v1") if isinstance(obj, Service) else ("IPAddress", f"{GROUP}/v1")
        await self._events.tell(reference_to(kind, version, obj.metadata), reason, action, note)


def _is_for(address: IPAddress, service: Service) -> bool:
    """Whether an address says that it is the service's."""
    parent, metadata = address.spec.parent_ref, service.metadata
    return parent is not None and (parent.group, parent.resource, parent.namespace, parent.name) == (
        "",
        "services",
        metadata.namespace,
        metadata.name,
    )
