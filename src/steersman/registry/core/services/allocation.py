"""Allocation of a Service's addresses and ports.

All are allocated before the service is validated, and released if it is not stored, or no longer needed after it is
stored (pkg/registry/core/service/storage).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final

from steersman.api.core.v1 import Service
from steersman.machinery.errors.field import Path, invalid
from steersman.machinery.errors.status import StatusError, plain_internal
from steersman.machinery.errors.status import internal as internal_error
from steersman.machinery.errors.status import invalid as invalid_object
from steersman.machinery.identity.schema import GroupKind, GroupResource
from steersman.registry.core.services.cluster_ips import AddressError, ClusterIPs, RangeFull
from steersman.registry.core.services.fields import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    NONE,
    has_node_ports,
    needs_health_check,
    needs_node_port,
    node_ports_of,
)
from steersman.registry.core.services.ip_families import init_ip_families, prefers_dual_stack_unchanged
from steersman.registry.core.services.node_port_repair import NodePortRepair
from steersman.registry.core.services.node_ports import NodePorts, NoRange, PortBitmap, PortError, PortOperation
from steersman.registry.services import Services
from steersman.storage.interface import StorageUnavailable, Unreadable, Unwritable

logger = logging.getLogger(__name__)

_KIND: Final = GroupKind("", "Service")
_ADDRESSES: Final = Path("spec", "clusterIPs")
_PORTS: Final = Path("spec", "ports")

Finish = Callable[[bool], Awaitable[None]]


def _ports_of(service: Service) -> tuple[int, ...]:
    """Return every node port of a service, with that of its health check."""
    health_check = service.spec.health_check_node_port
    return (*node_ports_of(service), *((health_check,) if health_check else ()))


class _Change:
    """The addresses and ports that one write of a service has allocated, and those to release once it is stored."""

    __slots__ = ("allocated", "ports", "released")

    def __init__(self) -> None:
        self.allocated: list[str] = []
        self.released: list[str] = []
        self.ports: PortOperation | None = None


class ServiceAllocation:
    """The allocators of the addresses and ports of all services."""

    def __init__(self, services: Services) -> None:
        self.cluster_ips = ClusterIPs(services)
        storage = services.storage_of(GroupResource("", "services"))
        self.node_ports = NodePorts(services.service_node_ports, storage)
        self._repair = NodePortRepair(services, self.node_ports)

    async def repair(self) -> None:
        """Bring the allocated ports in line with the stored services. Raises StatusError, ValueError."""
        await self._repair.run()

    async def _ports(self, service: Service, work: Callable[[PortOperation], None], *, dry_run: bool) -> PortOperation:
        """Run `work`, which allocates ports for a service, and return its operation. Raises StatusError."""
        ports, before = service.spec.ports, [each.node_port for each in service.spec.ports]
        health_check = service.spec.health_check_node_port

        def allocate(bitmap: PortBitmap) -> PortOperation:
            for port, node_port in zip(ports, before, strict=True):  # undo an earlier attempt
                port.node_port = node_port
            service.spec.health_check_node_port = health_check
            operation = PortOperation(bitmap, dry_run=dry_run)
            work(operation)
            return operation

        run = self.node_ports.preview if dry_run else self.node_ports.change
        try:
            try:
                return await run(allocate)
            except NoRange:  # the first server of this store has just started
                await self.repair()
                return await run(allocate)
        except (PortError, NoRange) as error:
            raise internal_error(f"failed to allocate a nodePort: {error}") from error
        except (StorageUnavailable, Unreadable, Unwritable) as error:
            raise internal_error(error) from error

    async def _release_ports(self, ports: Collection[int]) -> None:
        """Release ports on a best-effort basis: a repair finds the ports that stay allocated."""
        if not ports:
            return

        def release(bitmap: PortBitmap) -> None:
            for port in ports:
                bitmap.release(port)

        try:
            await self.node_ports.change(release)
        except NoRange:
            pass  # no port has been allocated yet
        except (PortError, StorageUnavailable, Unreadable, Unwritable) as error:
            logger.error("error releasing the node ports %s: %s", sorted(ports), error)

    async def for_create(self, service: Service, namespace: str, *, dry_run: bool) -> Finish:
        """Fill in the addresses and ports of a new service. Raises StatusError.

        The caller must call the returned function with the outcome of the write.
        """
        init_ip_families(service, None, self.cluster_ips.families)
        change = _Change()
        finish = self._finish(change, dry_run=dry_run)
        try:
            await self._fill_cluster_ips(service, namespace, change.allocated, dry_run=dry_run)
            if has_node_ports(service) or needs_health_check(service):
                change.ports = await self._ports(service, partial(_fill_ports, service), dry_run=dry_run)
        except StatusError:
            await finish(False)
            raise
        return finish

    async def for_update(self, new: Service, old: Service, namespace: str, *, dry_run: bool) -> Finish:
        """Fill in the missing addresses and ports of an updated service, and note which are to be released.

        The caller must call the returned function with the outcome of the write. Raises StatusError.
        """
        init_ip_families(new, old, self.cluster_ips.families)
        change = _Change()
        finish = self._finish(change, dry_run=dry_run)
        try:
            await self._update_cluster_ips(new, old, namespace, change, dry_run=dry_run)
            if has_node_ports(new) or has_node_ports(old) or needs_health_check(new) or needs_health_check(old):
                change.ports = await self._ports(new, partial(_update_ports, new, old), dry_run=dry_run)
        except StatusError:
            await finish(False)
            raise
        return finish

    async def release(self, service: Service) -> None:
        """Release all addresses and ports of a deleted service."""
        spec = service.spec
        if spec.type != EXTERNAL_NAME and spec.cluster_ips[:1] != [NONE]:
            for address in spec.cluster_ips:
                await self.cluster_ips.release(address)
        await self._release_ports(_ports_of(service))

    def _finish(self, change: _Change, *, dry_run: bool) -> Finish:
        async def finish(stored: bool) -> None:
            if dry_run:
                return
            if change.ports is not None:
                await self._release_ports(change.ports.released if stored else change.ports.allocated)
            for address in change.released if stored else change.allocated:
                await self.cluster_ips.release(address)

        return finish

    async def _fill_cluster_ips(self, service: Service, namespace: str, allocated: list[str], *, dry_run: bool) -> None:
        """Allocate an address for each family: the requested address, or any free one."""
        spec = service.spec
        if spec.type == EXTERNAL_NAME or spec.cluster_ips[:1] == [NONE]:
            return
        spec.cluster_ips += [""] * (len(spec.ip_families) - len(spec.cluster_ips))
        for index in range(len(spec.ip_families)):
            await self._allocate_ip(service, namespace, index, allocated, dry_run=dry_run)
        spec.cluster_ip = spec.cluster_ips[0]

    async def _allocate_ip(
        self, service: Service, namespace: str, index: int, allocated: list[str], *, dry_run: bool
    ) -> None:
        """Allocate the address at `index`. Raises StatusError."""
        spec, name = service.spec, service.metadata.name
        requested = spec.cluster_ips[index]
        try:
            if requested:
                await self.cluster_ips.allocate(namespace, name, requested, dry_run=dry_run)
                allocated.append(requested)
                return
            found = await self.cluster_ips.allocate_next(namespace, name, spec.ip_families[index], dry_run=dry_run)
        except RangeFull as error:
            raise internal_error(f'failed to allocate a serviceIP for Service "{name}": {error}') from error
        except AddressError as error:
            what = f"IP {requested}" if requested else "IP"
            fault = invalid(_ADDRESSES, list(spec.cluster_ips), f"failed to allocate {what}: {error}")
            raise invalid_object(_KIND, name, [fault]) from error
        allocated.append(found)
        spec.cluster_ips[index] = found

    async def _update_cluster_ips(
        self, new: Service, old: Service, namespace: str, change: _Change, *, dry_run: bool
    ) -> None:
        before, after, allocated, released = old.spec, new.spec, change.allocated, change.released
        if prefers_dual_stack_unchanged(new, old):
            return
        if before.type == EXTERNAL_NAME:
            if after.type != EXTERNAL_NAME:
                await self._fill_cluster_ips(new, namespace, allocated, dry_run=dry_run)
            return
        if before.cluster_ips[:1] == [NONE]:
            return
        if after.type == EXTERNAL_NAME:
            released += before.cluster_ips
        elif len(before.ip_families) == 1 and len(after.ip_families) == 2:
            if len(after.cluster_ips) < 2:
                after.cluster_ips.append("")
            await self._allocate_ip(new, namespace, 1, allocated, dry_run=dry_run)
        elif len(before.ip_families) == 2 and len(after.ip_families) == 1:
            released.append(before.cluster_ips[1])


def _port_error(service: Service, index: int, port: int, error: PortError) -> StatusError:
    fault = invalid(_PORTS[index] / "nodePort", port, str(error))
    return invalid_object(_KIND, service.metadata.name, [fault])


def _next_port(operation: PortOperation) -> int:
    try:
        return operation.allocate_next()
    except PortError as error:
        raise internal_error(f"failed to allocate a nodePort: {error}") from error


def _fill_ports(service: Service, operation: PortOperation) -> None:
    """Allocate the ports of a new service. Raises StatusError."""
    if has_node_ports(service):
        fill_node_ports(service, operation)
    if needs_health_check(service):
        _fill_health_check_port(service, operation)


def _update_ports(new: Service, old: Service, operation: PortOperation) -> None:
    """Allocate the missing ports of an updated service, and release those it no longer needs. Raises StatusError."""
    _update_node_ports(new, old, operation)
    _update_health_check_port(new, old, operation)


def fill_node_ports(service: Service, operation: PortOperation) -> None:
    """Allocate a node port for each port; equal ports with different protocols share it. Raises StatusError."""
    ports = service.spec.ports
    allocated: dict[int, int] = {}
    first_requested = {each.port: each.node_port for each in reversed(ports) if each.node_port}
    for index, port in enumerate(ports):
        if not port.node_port and not needs_node_port(service):
            continue
        shared = allocated.get(port.port, 0)
        if not shared:
            requested = first_requested.get(port.port, 0)
            if requested:
                _allocate(service, index, requested, operation)
            allocated[port.port] = port.node_port = requested or _next_port(operation)
        elif not port.node_port:
            port.node_port = shared
        elif port.node_port != shared:
            _allocate(service, index, port.node_port, operation)


def _allocate(service: Service, index: int, port: int, operation: PortOperation) -> None:
    try:
        operation.allocate(port)
    except PortError as error:
        raise _port_error(service, index, port, error) from error


def _update_node_ports(new: Service, old: Service, operation: PortOperation) -> None:
    if has_node_ports(old) and new.spec.type in (EXTERNAL_NAME, CLUSTER_IP):
        for number in node_ports_of(old):
            operation.release_later(number)
    if not has_node_ports(new):
        return
    before = node_ports_of(old)
    known = set(before)
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(new.spec.ports):
        if not port.node_port:
            if not needs_node_port(new):
                continue
            port.node_port = _next_port(operation)
        elif port.node_port not in known:
            _allocate(new, index, port.node_port, operation)
            known.add(port.node_port)
        if (port.protocol, port.node_port) in seen:
            raise plain_internal(f"duplicate nodePort: {{{port.protocol} {port.node_port}}}")
        seen.add((port.protocol, port.node_port))
    for number in set(before) - set(node_ports_of(new)):
        operation.release_later(number)


def _fill_health_check_port(service: Service, operation: PortOperation) -> None:
    port = service.spec.health_check_node_port
    try:
        if port:
            operation.allocate(port)
        else:
            service.spec.health_check_node_port = operation.allocate_next()
    except PortError as error:
        what = f"requested HealthCheck NodePort {port}" if port else "a HealthCheck NodePort 0"
        raise internal_error(f"failed to allocate {what}: {error}") from error


def _update_health_check_port(new: Service, old: Service, operation: PortOperation) -> None:
    if needs_health_check(new) and not needs_health_check(old):
        _fill_health_check_port(new, operation)
    elif needs_health_check(old) and not needs_health_check(new):
        operation.release_later(old.spec.health_check_node_port)
