"""Controllers of kube-apiserver, which restore the objects of every cluster while a server runs.

They have kube-apiserver's hook names and intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from steersman.controlplane.bootstrap import AUTHENTICATION_INFO, Bootstrap
from steersman.controlplane.controllers import POLICY_STATUS, is_enabled
from steersman.controlplane.flow_control_configuration import INTERVAL as FLOW_CONTROL_INTERVAL
from steersman.controlplane.identity_lease import COLLECTION, RENEWAL, IdentityLease
from steersman.controlplane.kubernetes_service.peers import PeerLease
from steersman.controlplane.kubernetes_service.service import INTERVAL as ENDPOINTS_INTERVAL
from steersman.controlplane.kubernetes_service.service import KubernetesService
from steersman.controlplane.legacy_token_tracking import NAME, NAMESPACE, LegacyTokenTracking
from steersman.controlplane.periodic import periodic
from steersman.controlplane.policy_status import GROUP, PLURAL, PolicyStatus
from steersman.controlplane.stores import Stores
from steersman.registry.core.services.ip_repair import ServiceIPRepair
from steersman.registry.core.services.services import ServiceAllocator
from steersman.registry.services import Services
from steersman.server.server import Server
from steersman.storage.interface import Storage
from steersman.store.follower import Follower
from steersman.work.periodic import Periodic

if TYPE_CHECKING:
    from steersman.openapi.remote import RemoteDocuments

REPAIR_INTERVAL: Final = 180.0
"""Seconds between two repairs of all addresses and ports of services."""
SOON: Final = 10.0
MINUTE: Final = 60.0


class Upkeep:
    """Controllers that start with the hooks of `server` and end with `stop`."""

    def __init__(
        self,
        server: Server,
        stores: Stores,
        services: Services,
        bootstrap: Bootstrap,
        kubernetes: KubernetesService,
        remote: Callable[[], RemoteDocuments],
        controllers: Sequence[str],
        *,
        keeps_lease: bool = True,
        shared: Storage | None = None,
    ) -> None:
        """`remote` returns the OpenAPI documents of other servers; `controllers` is the option's value.

        Of several processes of one server, one `keeps_lease`. `shared` is the storage if other servers may use it too.
        """
        self._keeps_lease = keeps_lease
        self._server = server
        self._store = stores.store
        self._lease = IdentityLease(server, stores.objects("coordination.k8s.io", "leases"))
        self._peer = None if shared is None else PeerLease(shared, self._lease.name)
        self._legacy_tokens = LegacyTokenTracking(stores.objects("", "configmaps"))
        self.addresses = ServiceIPRepair(services)
        self._bootstrap = bootstrap
        self._kubernetes = kubernetes
        self._address_repair = periodic("service address repair", self.addresses.run, SOON)
        self._authentication = periodic("authentication information", bootstrap.authentication_configmap, MINUTE)
        self._legacy_token_tracking = periodic("legacy token tracking", self._legacy_tokens.sync, MINUTE)
        self._policy_status: PolicyStatus | None = None
        if is_enabled(POLICY_STATUS, controllers):
            policies = stores.store(GROUP, PLURAL), stores.objects(GROUP, PLURAL)
            self._policy_status = PolicyStatus(server, *policies, remote)
        self._renewal: Periodic | None = None
        self._running: list[Periodic] = []

    def install(self) -> None:
        """Add the hooks."""
        server = self._server
        server.add_post_start_hook("start-service-ip-repair-controllers", self._start_repairs)
        server.add_post_start_hook("start-kube-apiserver-identity-lease-controller", self._start_identity)
        server.add_post_start_hook("start-kube-apiserver-identity-lease-garbage-collector", self._start_collector)
        server.add_post_start_hook("start-legacy-token-tracking-controller", self._start_legacy_token_tracking)
        server.add_pre_shutdown_hook("stop-kube-apiserver-identity-lease-controller", self._stop_identity)

    def follow(self) -> None:
        """Start restoring the objects of `bootstrap`; call it after the hooks of `bootstrap`."""
        self._start(periodic("system namespaces", self._bootstrap.namespaces, MINUTE))
        self._start(periodic("the default ServiceCIDR", self._bootstrap.service_cidr, SOON))
        self._start(periodic("the service kubernetes", self._kubernetes.sync, ENDPOINTS_INTERVAL))
        self._start(periodic("flow schemas and priority levels", self._bootstrap.flow_control, FLOW_CONTROL_INTERVAL))
        self._start(self._authentication)
        self._follow_config_map(*AUTHENTICATION_INFO, self._authentication, only_its_end=True)
        if self._policy_status is not None:
            self._policy_status.start()

    async def stop(self) -> None:
        """Stop all controllers."""
        if self._policy_status is not None:
            await self._policy_status.stop()
        for each in self._running:
            await each.stop()
        self._running.clear()

    def _start(self, periodic: Periodic) -> None:
        periodic.start()
        self._running.append(periodic)

    def _follow_config_map(self, namespace: str, name: str, periodic: Periodic, *, only_its_end: bool = False) -> None:
        store = self._store("", "configmaps")

        def changed(_: str, __: str, entry: object) -> None:
            if entry is None or not only_its_end:
                periodic.wake()

        Follower(store, changed, key=store.key(namespace, name)).begin()

    # Addresses and ports of services

    async def repair_ports(self) -> None:
        """Rebuild the allocation of ports from the existing services."""
        services = self._store("", "services").allocator
        assert isinstance(services, ServiceAllocator)
        await services.repair()

    async def follow_address(self) -> None:
        """Have the service `kubernetes` lead to the current listening address."""
        await self._kubernetes.begin()

    async def _start_repairs(self) -> None:
        Follower(self._store("", "services"), self._service_changed).begin()
        Follower(self._store("networking.k8s.io", "ipaddresses"), self._address_changed).begin()
        await self.repair_ports()
        await self.addresses.run()
        self._start(self._address_repair)
        self._start(periodic("service address and port repair", self.restore_all, REPAIR_INTERVAL))

    async def restore_all(self) -> None:
        """Repair all ports, and request the repair of all addresses."""
        await self.repair_ports()
        self.addresses.everything_changed()
        self._address_repair.wake()

    def _service_changed(self, namespace: str, name: str, entry: object) -> None:
        if entry is not None:
            self.addresses.service_changed(namespace, name)
            self._address_repair.wake()

    def _address_changed(self, namespace: str, name: str, entry: object) -> None:
        if entry is not None:
            self.addresses.address_changed(name)
            self._address_repair.wake()

    # The server's identity

    async def _start_identity(self) -> None:
        if not self._keeps_lease:
            return
        await self._lease.begin()
        await self._renew_peer()
        self._renewal = periodic("identity lease", self._renew_identity, RENEWAL, is_simulated=True)
        self._start(self._renewal)

    async def _renew_identity(self) -> None:
        await self._renew_peer()
        await self._lease.renew()

    async def _renew_peer(self) -> None:
        if self._peer is not None:
            address = self._server.external_address
            await self._peer.renew(address.host, address.port)

    async def _start_collector(self) -> None:
        await self._lease.collect()
        self._start(periodic("identity lease garbage collector", self._lease.collect, COLLECTION, is_simulated=True))

    async def _stop_identity(self) -> None:
        if self._renewal is not None:
            await self._renewal.stop()
            await self._lease.end()
            if self._peer is not None:
                await self._peer.end()

    # Tokens in secrets

    async def _start_legacy_token_tracking(self) -> None:
        await self._legacy_tokens.sync()
        self._start(self._legacy_token_tracking)
        self._follow_config_map(NAMESPACE, NAME, self._legacy_token_tracking)
