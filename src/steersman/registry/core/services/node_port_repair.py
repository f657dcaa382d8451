"""Brings the node ports that count as taken and the Services that have them together again.

A port may have lost its Service, or a Service may have a port that nobody took for it: after a crash between the two
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
    PortError,
    TakenPorts,
    read_taken,
    text_of,
)
from steersman.registry.core.services.repair_events import RepairEvents, reference_to
from steersman.registry.services import Services
from steersman.rest.objects import Reading
from steersman.storage.interface import KeyValue
from steersman.store.storage_errors import available, committed

logger = logging.getLogger(__name__)

LOOKS: Final = 3
"""How often a port is found to be nobody's before it is given back: its Service may be on the way."""

_CONTROLLER: Final = "portallocator-repair-controller"
_ACTION: Final = "PortAllocation"
_ATTEMPTS: Final = 10


class PortsOfService(NamedTuple):
    """A Service and its ports on nodes: one twice that it has twice with one protocol."""

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
    """What is wrong with a port of a Service."""

    service: ObjectReference
    reason: str
    note: str


class Rebuilt(NamedTuple):
    """The ports that Services have, what is wrong with them, and those that were taken and no Service has."""

    taken: TakenPorts
    findings: list[Finding]
    left: TakenPorts


def rebuild(ports: range, stored: TakenPorts, services: Iterable[PortsOfService]) -> Rebuilt:
    """What the Services come to, of `ports`, beside what is stored."""
    taken, left = TakenPorts(ports), TakenPorts(stored.ports, stored.bits)
    findings: list[Finding] = []
    for service, own in services:
        for port in own:
            try:
                taken.allocate(port)
            except PortError as error:
                if str(error) == ALLOCATED:
                    reason, note = "PortAlreadyAllocated", "was assigned to multiple services; please recreate service"
                else:
                    reason = "PortOutOfRange"
                    note = f"is not within the port range {text_of(ports)}; please recreate service"
                findings.append(Finding(service, reason, f"Port {port} {note}"))
                continue
            if port in left:
                left.release(port)
            else:
                findings.append(Finding(service, "PortNotAllocated", f"Port {port} is not allocated; repairing"))
    return Rebuilt(taken, findings, left)


class NodePortRepair:
    """Looks at all Services; to be run every few minutes by each server."""

    def __init__(self, services: Services, node_ports: NodePorts) -> None:
        self._objects = services.objects
        self._range = services.service_node_ports
        self._node_ports = node_ports
        self._events = RepairEvents(services, _CONTROLLER)
        self._looks_left: dict[int, int] = {}
        """How often a port is still to be found to be nobody's."""

    async def run(self) -> None:
        """Stores which ports Services have, and tells what was wrong. Raises StatusError, ValueError for what is stored
        and cannot be read."""
        for _ in range(_ATTEMPTS):
            # The Services have to be at least as new as the ports, or one that was just taken looked like nobody's.
            before = await available(self._node_ports.stored())
            services = self._objects("", "services")
            await services.catch_up()
            stored = TakenPorts(self._range) if before is None else read_taken(before.value)
            rebuilt = rebuild(self._range, stored, await services.read_all("", _PORTS))
            looks_left = dict(self._keep(rebuilt))
            if await committed(self._stored(rebuilt.taken, before)):
                self._looks_left = looks_left
                if before is not None:  # otherwise nothing is wrong: nobody has taken any yet
                    await self._tell(rebuilt.findings)
                return
        logger.warning("the ports of services are changed too often to be looked at now")

    async def _stored(self, taken: TakenPorts, before: KeyValue | None) -> bool:
        return await self._node_ports.replace(taken, before)

    def _keep(self, rebuilt: Rebuilt) -> Iterator[tuple[int, int]]:
        """Lets ports that are nobody's count as taken for some looks, and gives how many these are from now on."""
        for port in rebuilt.left:
            looks = self._looks_left.get(port, LOOKS - 1)
            if not looks:
                logger.warning("the node port %d appears to have leaked: cleaning up", port)
                continue
            if port not in self._looks_left:
                logger.warning("the node port %d may have leaked: flagging for later clean up", port)
            if port in rebuilt.taken.ports:
                rebuilt.taken.allocate(port)
            yield port, looks - 1

    async def _tell(self, findings: Iterable[Finding]) -> None:
        for service, reason, note in findings:
            await self._events.tell(service, reason, _ACTION, note)
