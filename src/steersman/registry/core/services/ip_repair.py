"""Repair of the addresses of Services and their IPAddress objects.

An address may have lost its object, and an object its service: after a crash between the two writes, or because
somebody changed one of them. Follows pkg/registry/core/service/ipallocator/controller.
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
"""Seconds for which an IPAddress may have no service: the longest time of the request that creates the service."""

_CONTROLLER: Final = "ipallocator-repair-controller"


class ServiceIPRepair:
    """The repair controller: checks changed services and addresses (`service_changed`, `address_changed`), or all of
    them.
    """

    def __init__(self, services: Services, *, clock: Callable[[], float] = times.monotonic) -> None:
        """Create the controller.

        `clock` returns monotonic seconds, so that an address in allocation never seems old.
        """
        self._objects = services.objects
        self._cluster_ips = ClusterIPs(services)
        self._clock = clock
        self._events = RepairEvents(services, _CONTROLLER, clock)
        self._services: dict[tuple[str, str], None] = {}
        self._addresses: dict[str, None] = {}
        self._orphans: dict[str, tuple[str, float]] = {}
        """Addresses without a service, by name: their UID, and the time of the first observation."""

    def service_changed(self, namespace: str, name: str) -> None:
        """Check the service in the next `run`."""
        self._services[namespace, name] = None

    def address_changed(self, name: str) -> None:
        """Check the address in the next `run`."""
        self._addresses[name] = None

    def everything_changed(self) -> None:
        """Check every service and address in the next `run`."""
        for namespace, name in self._objects("", "services").names():
            self.service_changed(namespace, name)
        for _, name in self._objects(GROUP, "ipaddresses").names():
            self.address_changed(name)

    async def run(self) -> None:
        """Check all changes, and the addresses without a service.

        A failed repair is logged, and tried again after the next `everything_changed`.
        """
        self._addresses |= dict.fromkeys(self._orphans)
        if self._services or self._addresses:
            await self._wait_until_current()
        time_slice = TimeSlice()
        while self._services or self._addresses:
            try:
                if self._services:
                    await self._check_service(*self._services.popitem()[0])
                else:
                    await self._check_address(self._addresses.popitem()[0])
            except (AddressError, StatusError) as error:
                logger.warning("an address could not be repaired: %s", error)
            await time_slice.pause_if_over()

    async def _wait_until_current(self) -> None:
        """Wait until the caches have both writes of every finished service creation, on any server. Raises StatusError."""
        await self._objects("", "services").wait_until_current()
        await self._objects(GROUP, "ipaddresses").wait_until_current()

    async def _check_service(self, namespace: str, name: str) -> None:
        """Check that every address of a service has an object that refers to the service."""
        service: Service | None = await self._objects("", "services").get_cached(namespace, name)
        if service is None or not needs_cluster_ip(service) or service.spec.cluster_ip in ("", NONE):
            return
        ranges = await self._cluster_ips.ranges(ready=False)
        for text in service.spec.cluster_ips:
            address = parse_ip_sloppy(text)
            if address is None:
                note = f"Cluster IP {text} is not a valid IP; please recreate Service"
                await self._report(service, "ClusterIPNotValid", "ClusterIPValidation", note)
                continue
            shown = f"[IPv{address.version}]: {address}"
            if not any(address in network for network in ranges):
                note = f"Cluster IP {shown} is not within any configured Service CIDR; please recreate service"
                await self._report(service, "ClusterIPOutOfRange", "ClusterIPAllocation", note)
                continue
            await self._check_address_of_service(service, str(address), shown)

    async def _check_address_of_service(self, service: Service, address: str, shown: str) -> None:
        """Check one address of a service and its object."""
        metadata = service.metadata
        addresses = self._objects(GROUP, "ipaddresses")
        cached: IPAddress | None = await addresses.get_cached("", address)
        if cached is None or not _is_for(cached, service):
            await self._wait_until_current()  # the object is written before its service, but may become visible later
            now: Service | None = await self._objects("", "services").get_cached(metadata.namespace, metadata.name)
            if now is None or address not in now.spec.cluster_ips:
                return
            cached = await addresses.get_cached("", address)
        if cached is None:
            note = f"Cluster IP {shown} is not allocated; repairing"
            await self._report(service, "ClusterIPNotAllocated", "ClusterIPAllocation", note)
            await self._cluster_ips.create_address(metadata.namespace, metadata.name, ip_address(address))
            return
        parent = cached.spec.parent_ref
        wrong = parent is None or parent.group != "" or parent.resource != "services"
        if not wrong and parent is not None and (parent.namespace, parent.name) != (metadata.namespace, metadata.name):
            other: Service | None = await self._objects("", "services").get_cached(parent.namespace, parent.name)
            if other is not None and address in other.spec.cluster_ips:
                note = f"Cluster IP {shown.replace(' ', '')} was assigned to multiple services; please recreate service"
                await self._report(service, "ClusterIPAlreadyAllocated", "ClusterIPAllocation", note)
                return
            wrong = True
        if wrong:
            whose = f"the ClusterIP {shown} for Service {metadata.namespace}/{metadata.name}"
            note = f"{whose} has a wrong reference; repairing"
            await self._report(service, "ClusterIPNotAllocated", "ClusterIPAllocation", note)
        labels = cached.metadata.labels
        family = f"IPv{6 if ':' in address else 4}"
        if wrong or labels.get(MANAGED_BY_LABEL) != ALLOCATOR or labels.get(FAMILY_LABEL) != family:
            await self._cluster_ips.release(address)
            await self._cluster_ips.create_address(metadata.namespace, metadata.name, ip_address(address))

    async def _check_address(self, name: str) -> None:
        """Check that an address allocated for a service is still one of the service's addresses."""
        uid, since = self._orphans.pop(name, ("", 0.0))
        address: IPAddress | None = await self._objects(GROUP, "ipaddresses").get_cached("", name)
        if address is None or address.metadata.labels.get(MANAGED_BY_LABEL) != ALLOCATOR:
            return
        parent = address.spec.parent_ref
        if parent is None or parent.group != "" or parent.resource != "services":
            note = f"IPAddress {name} appears to have been modified, not referencing a Service: cleaning up"
            await self._release(address, "IPAddressNotAllocated", note)
            return
        service: Service | None = await self._objects("", "services").get_cached(parent.namespace, parent.name)
        if service is not None and name in service.spec.cluster_ips:
            return
        if uid != address.metadata.uid:
            uid, since = address.metadata.uid, self._clock()
        if self._clock() - since <= GRACE:
            self._orphans[name] = uid, since  # its service may not be stored yet
            return
        whose = f"IPAddress: {name} for Service {parent.namespace}/{parent.name}"
        if service is None:
            await self._release(address, "IPAddressNotAllocated", f"{whose} appears to have leaked: cleaning up")
        else:
            await self._release(address, "IPAddressWrongReference", f"{whose} has a wrong reference; cleaning up")

    async def _release(self, address: IPAddress, reason: str, note: str) -> None:
        await self._report(address, reason, "IPAddressAllocation", note)
        await self._cluster_ips.release(address.metadata.name)

    async def _report(self, obj: Any, reason: str, action: str, note: str) -> None:
        """Create an Event about a service or an address, and write a log line."""
        kind, version = ("Service", "v1") if isinstance(obj, Service) else ("IPAddress", f"{GROUP}/v1")
        await self._events.report(reference_to(kind, version, obj.metadata), reason, action, note)


def _is_for(address: IPAddress, service: Service) -> bool:
    """Return True if an address refers to the service."""
    parent, metadata = address.spec.parent_ref, service.metadata
    return parent is not None and (parent.group, parent.resource, parent.namespace, parent.name) == (
        "",
        "services",
        metadata.namespace,
        metadata.name,
    )
