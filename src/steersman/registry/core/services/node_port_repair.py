"""Repair of the node port allocation.

A port may have lost its Service, or a Service may have a port that is not allocated: after a crash between the two
writes, or because somebody changed one of them. Follows pkg/registry/core/service/portallocator/controller.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from steersman.api.core.v1 import ObjectReference, Service
from steersman.registry.core.services.fields import distinct_ports_of
from steersman.registry.core.services.node_ports import (
    ALLOCATED,
    NodePorts,
    PortBitmap,
    PortError,
    decode_bitmap,
    range_text,
)
from steersman.registry.core.services.repair_events import RepairEvents, reference_to
from steersman.registry.services import Services
from steersman.rest.objects import Reading
from steersman.storage.interface import KeyValue
from steersman.store.storage_errors import available, committed

logger = logging.getLogger(__name__)

RUNS_BEFORE_RELEASE: Final = 3
"""Consecutive runs in which a port must have no Service before it is released, as its Service may not be stored yet."""

_CONTROLLER: Final = "portallocator-repair-controller"
_ACTION: Final = "PortAllocation"
_ATTEMPTS: Final = 10


class PortsOfService(NamedTuple):
    """A Service and its node ports; a port that one protocol has twice is listed twice."""

    service: ObjectReference
    ports: tuple[int, ...]


def _ports_of(service: Service) -> PortsOfService:
    return PortsOfService(reference_to("Service", "v1", service.metadata), tuple(distinct_ports_of(service)))


_PORTS: Final = Reading(
    _ports_of,
    "metadata.namespace",
    "metadata.name",
    "metadata.uid",
    "metadata.resourceVersion",
    "spec.ports",
    "spec.healthCheckNodePort",
)


class Finding(NamedTuple):
    """An inconsistency of a port of a Service."""

    service: ObjectReference
    reason: str
    note: str


class Rebuilt(NamedTuple):
    """The result of a rebuild: the ports of all Services, the inconsistencies, and allocated ports without a Service."""

    bitmap: PortBitmap
    findings: list[Finding]
    without_service: PortBitmap


def rebuild(ports: range, stored: PortBitmap, services: Iterable[PortsOfService]) -> Rebuilt:
    """Allocate the ports of all Services anew in `ports`, and compare the result with the stored allocation."""
    bitmap, without_service = PortBitmap(ports), PortBitmap(stored.ports, stored.bits)
    findings: list[Finding] = []
    for service, own in services:
        for port in own:
            try:
                bitmap.allocate(port)
            except PortError as error:
                if str(error) == ALLOCATED:
                    reason, note = "PortAlreadyAllocated", "was assigned to multiple services; please recreate service"
                else:
                    reason = "PortOutOfRange"
                    note = f"is not within the port range {range_text(ports)}; please recreate service"
                findings.append(Finding(service, reason, f"Port {port} {note}"))
                continue
            if port in without_service:
                without_service.release(port)
            else:
                findings.append(Finding(service, "PortNotAllocated", f"Port {port} is not allocated; repairing"))
    return Rebuilt(bitmap, findings, without_service)


class NodePortRepair:
    """The repair controller of node ports; every server runs it every few minutes."""

    def __init__(self, services: Services, node_ports: NodePorts) -> None:
        self._objects = services.objects
        self._range = services.service_node_ports
        self._node_ports = node_ports
        self._events = RepairEvents(services, _CONTROLLER)
        self._runs_left: dict[int, int] = {}
        """Remaining runs until a port without a Service is released, by port."""

    async def run(self) -> None:
        """Store the ports of all Services as the allocation, and report the inconsistencies.

        Raises StatusError, and ValueError if the stored allocation cannot be decoded.
        """
        for _ in range(_ATTEMPTS):
            # Services are read after the allocation, or a port that was just allocated would seem to have no Service.
            before = await available(self._node_ports.stored())
            services = self._objects("", "services")
            await services.wait_until_current()
            stored = PortBitmap(self._range) if before is None else decode_bitmap(before.value)
            rebuilt = rebuild(self._range, stored, await services.read_all("", _PORTS))
            runs_left = dict(self._postpone_releases(rebuilt))
            if await committed(self._replace(rebuilt.bitmap, before)):
                self._runs_left = runs_left
                if before is not None:  # without an allocation there is nothing to be inconsistent with
                    await self._report(rebuilt.findings)
                return
        logger.warning("the node port allocation changes too often to be checked now")

    async def _replace(self, bitmap: PortBitmap, before: KeyValue | None) -> bool:
        return await self._node_ports.replace(bitmap, before)

    def _postpone_releases(self, rebuilt: Rebuilt) -> Iterator[tuple[int, int]]:
        """Keep ports without a Service allocated for some runs; yield each with the number of runs that are left."""
        for port in rebuilt.without_service:
            runs = self._runs_left.get(port, RUNS_BEFORE_RELEASE - 1)
            if not runs:
                logger.warning("the node port %d appears to have leaked: cleaning up", port)
                continue
            if port not in self._runs_left:
                logger.warning("the node port %d may have leaked: flagging for later clean up", port)
            if port in rebuilt.bitmap.ports:
                rebuilt.bitmap.allocate(port)
            yield port, runs - 1

    async def _report(self, findings: Iterable[Finding]) -> None:
        for service, reason, note in findings:
            await self._events.report(service, reason, _ACTION, note)
