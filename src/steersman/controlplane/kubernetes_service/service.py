"""The Service `kubernetes`, by which pods reach the servers, and its endpoints.

Follows pkg/controlplane/controller/kubernetesservice.
"""

from __future__ import annotations

import asyncio
import logging
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final

from steersman.api.core.v1 import Service, ServicePort, ServiceSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane.initial_objects import ObjectsOf, ensure
from steersman.controlplane.kubernetes_service.leases import ServerLeases
from steersman.controlplane.kubernetes_service.reconcilers import (
    NAME,
    NAMESPACE,
    CountReconciler,
    EndpointReconciler,
    LeaseReconciler,
    NoReconciler,
)
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.options import Options
from steersman.machinery.errors.status import StatusError
from steersman.machinery.validation.ip import unmapped
from steersman.rest.context import loopback
from steersman.server.server import ExternalAddress, Server
from steersman.storage.interface import Storage
from steersman.store.storage_errors import StorageNotReady

logger = logging.getLogger(__name__)

INTERVAL: Final = 10.0
"""Seconds between two checks of the Service and its endpoints."""
_LONGEST_END: Final = 2 * INTERVAL
"""Seconds after which the server's shutdown no longer waits for the removal of its endpoints."""

_LOOKS: Final = 5
_PAUSE: Final = 0.1
"""Seconds between two checks for the Service of another server."""


class KubernetesService:
    """Controller of the Service: `begin` creates it, `sync` restores it, `end` removes this server from its
    endpoints.
    """

    def __init__(
        self,
        server: Server,
        objects: ObjectsOf,
        reconciler: EndpointReconciler,
        service_range: IPv4Network | IPv6Network,
    ) -> None:
        """`service_range` is the IP range of Services."""
        self._server = server
        self._objects = objects
        self._reconciler = reconciler
        self._service_range = service_range
        self._lock = asyncio.Lock()
        self._begun = self._ended = False

    def install(self) -> None:
        """Add the hooks, under upstream's names."""
        self._server.add_post_start_hook("bootstrap-controller", self.begin)
        self._server.add_pre_shutdown_hook("stop-kubernetes-service-controller", self.end)

    async def begin(self) -> None:
        """Create the Service and its endpoints; if this is the only server, set the port too.

        Failures are logged. For example, the address may still be allocated to a deleted Service until the repair of
        addresses has released it. Raises StorageNotReady.
        """
        self._begun = True
        await self._keep_up(at_start=True)

    async def sync(self) -> None:
        """Restore the Service, and have it lead to the running servers. Raises StorageNotReady."""
        await self._keep_up(at_start=False)

    async def end(self) -> None:
        """Remove this server from the endpoints; failures are logged."""
        self._ended = True
        address = self._address()
        if address is None or not self._begun:
            return
        try:
            async with asyncio.timeout(_LONGEST_END), self._lock:
                await self._reconciler.remove(address.host, address.port)
        except (StatusError, ValueError, TimeoutError) as error:
            logger.error("unable to remove endpoints from kubernetes service: %s", error)

    async def _keep_up(self, *, at_start: bool) -> None:
        try:
            async with self._lock:
                if not self._ended:
                    await self._reconcile(at_start=at_start)
        except StorageNotReady:
            raise
        except StatusError as error:
            logger.error("unable to sync kubernetes service: %s", error.message)
        except ValueError as error:
            logger.error("unable to sync kubernetes service: %s", error)

    def _address(self) -> ExternalAddress | None:
        """Return the address of this server, None for a loopback address, which endpoints may not contain."""
        address = self._server.external_address
        return None if unmapped(ip_address(address.host)).is_loopback else address

    async def _reconcile(self, *, at_start: bool) -> None:
        services = self._objects("", "services")
        is_new = await self._create_if_missing(services)
        address = self._address()
        is_alone = address is None or await self._reconciler.reconcile(address.host, address.port, at_start=at_start)
        if not at_start or is_new or not is_alone:
            return

        def changed(old: Service | None) -> Service:
            service = self._service()
            if old is None:
                return service
            old.spec.ports = service.spec.ports
            return old

        await services.update(loopback(NAMESPACE, NAME), NAME, changed)

    async def _create_if_missing(self, services: StoreObjects) -> bool:
        """Create the Service if it is missing; return True if it was created. Raises StatusError."""
        for _ in range(_LOOKS):
            try:
                return await ensure(services, self._service())
            except StatusError as error:
                if error.reason != "Invalid":
                    raise
            await asyncio.sleep(_PAUSE)  # another server, which has just allocated the address, is creating the Service
            await services.wait_until_current()
        return await ensure(services, self._service())

    def _service(self) -> Service:
        port = ServicePort(name="https", protocol="TCP", port=443, target_port=self._server.external_address.port)
        spec = ServiceSpec(
            cluster_ip=str(self._service_range[1]),
            ports=[port],
            type="ClusterIP",
            session_affinity="None",
            ip_family_policy="SingleStack",
        )
        labels = {"component": "apiserver", "provider": "kubernetes"}
        return Service(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels=labels), spec=spec)


def reconciler_of(options: Options, storage: Storage, objects: ObjectsOf) -> EndpointReconciler:
    """Return the reconciler that the flags select; `storage` has the leases of servers."""
    match options.endpoint_reconciler_type:
        case "lease":
            return LeaseReconciler(ServerLeases(storage), objects)
        case "master-count":
            return CountReconciler(options.apiserver_count, objects)
        case _:
            return NoReconciler()
