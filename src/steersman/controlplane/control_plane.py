"""The whole API server: storage, stores, the server with its catalogue, and what runs around them."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from steersman.aggregator.aggregator import Aggregator
from steersman.api.apiextensions.v1 import CustomResourceDefinitionNames
from steersman.apiextensions.api_services import CustomAPIServices
from steersman.apiextensions.conversion_metrics import ConversionMetrics
from steersman.apiextensions.definitions import Definitions, Serves
from steersman.audit.metrics import AuditMetrics
from steersman.authentication.issued_tokens import IssuedTokens
from steersman.authentication.user import UserInfo
from steersman.controlplane.addresses import (
    Address,
    check_port,
    listen,
    public_address,
    reachable_address,
    service_ranges,
)
from steersman.controlplane.admission import admission_configuration
from steersman.controlplane.auditing import audit_rules, auditor
from steersman.controlplane.authentication_info import authentication_info
from steersman.controlplane.authenticators import (
    LOOPBACK,
    authenticator,
    configured_tokens,
    token_authenticator,
    token_keys,
)
from steersman.controlplane.authorizers import AuthorizerChain
from steersman.controlplane.bootstrap import Bootstrap
from steersman.controlplane.cache_checks import CacheChecks
from steersman.controlplane.configuration import (
    Common,
    admission_of,
    aggregation_of,
    built_in_resources,
    egress_of,
    loop_watchdog,
    server_config,
    services_of,
)
from steersman.controlplane.controllers import check_own
from steersman.controlplane.data_folder import (
    certificate_files,
    encryption_of,
    etcd_clusters,
    file_of,
    fill,
    is_storage_unavailable,
    make_data_folder,
    open_storage,
    unreadable,
)
from steersman.controlplane.flow_control import FlowControl
from steersman.controlplane.given_files import (
    check_kubelet_files,
    check_proxy_client,
    check_serving_files,
)
from steersman.controlplane.group_order import GroupOrder
from steersman.controlplane.identity_lease import server_id
from steersman.controlplane.kubernetes_service.leases import RESOURCE as SERVER_LEASES
from steersman.controlplane.kubernetes_service.service import KubernetesService, reconciler_of
from steersman.controlplane.legacy_token_tracking import TokenUse
from steersman.controlplane.metrics import install_metrics
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.option_ties import check_families
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.runtime_config import RuntimeConfig
from steersman.controlplane.storage_health import not_ready, wrong_with
from steersman.controlplane.storage_metrics import install_refusals, install_storage_metrics
from steersman.controlplane.stored_versions.rewriting import agreement_on
from steersman.controlplane.stores import Stores
from steersman.controlplane.token_keys import OwnTokenKeys, TokenKeys
from steersman.controlplane.upkeep import Upkeep
from steersman.endpoints.filters.arrival import Arrival
from steersman.endpoints.filters.observation import Observe
from steersman.machinery.large_work import nesting
from steersman.machinery.private_files import write_whole
from steersman.net.client.own_server import OwnServer, ThisServer
from steersman.openapi.first_use import OpenAPIOnFirstUse
from steersman.registry.services import Services
from steersman.rest.bound import BoundResource, bind
from steersman.rest.capabilities import ResourceStorage
from steersman.rest.resource import Resource
from steersman.server.basic_paths import install_basic_paths
from steersman.server.certificates import LOOPBACK_NAME, CertificateFiles, admin_kubeconfig
from steersman.server.debug_paths import install_debug_paths
from steersman.server.discovery import Discovery
from steersman.server.health import HealthCheck
from steersman.server.server import PARTING, Server
from steersman.storage.arrivals import Arrivals
from steersman.storage.interface import Storage, StorageUnavailable
from steersman.storage.memory import MemoryStorage, Snapshot
from steersman.store.store import Store
from steersman.work.offloading import SERVER, Account, bound
from steersman.work.threads import WorkerThreads

if TYPE_CHECKING:
    from steersman.controlplane.stored_versions.agreement import Agreement
    from steersman.controlplane.workers.worker import Worker
    from steersman.net.client.transport import Nearby

logger = logging.getLogger(__name__)


Implement = Callable[[BoundResource[Any], Services], ResourceStorage]
"""Makes what implements a resource in place of a store."""


_READ_BY_THE_SERVER: Final = (
    ("", "namespaces"),
    ("", "nodes"),
    ("", "pods"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("node.k8s.io", "runtimeclasses"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("scheduling.k8s.io", "priorityclasses"),
)
"""What judges requests: without their caches no answer is right."""
_STARTED_BEFORE_HOOKS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "storage-object-count-tracker-hook",
    "peer-endpoint-reconciler-controller",
    "storage-readiness",
)
"""Hooks of kube-apiserver for parts that run before the server listens: admission, the caches that it reads, the counts
of objects, leases of peers, and the wait for storage."""


P = ParamSpec("P")
R = TypeVar("R")


class ControlPlane:
    """A control plane: `await start()`, then `await stop()`. Made from Options; nothing is touched before `start`.


    `nearby` says how nodes, pods and services are reached whose addresses are not on the network, `kubelets` how this
    server itself reaches nodes' kubelets, which trust nobody else; `observe` is told of every request that was
    answered. `worker` says what it is a part of, if this process is one of several of a server.
    """

    def __init__(
        self,
        options: Options,
        *,
        nearby: Nearby | None = None,
        kubelets: Nearby | None = None,
        observe: Observe | None = None,
        worker: Worker | None = None,
    ) -> None:
        nesting.make_room()
        self.options = options
        self._nearby = nearby
        self._kubelets = kubelets
        self._observe = observe
        self._worker = worker
        self._threads = WorkerThreads()
        self._files: CertificateFiles | None = None
        self.storage: Storage | None = None
        self.server: Server | None = None
        self._stores: Stores | None = None
        self._services: Services | None = None
        self._upkeep: Upkeep | None = None
        self._custom: Definitions | None = None
        self._agreement: Agreement | None = None
        self._issued = IssuedTokens(options.audiences)
        self._keys: TokenKeys | None = None
        self._itself = ThisServer(self._own_server, cache(partial(self.token_of, LOOPBACK)))
        self._running = AsyncExitStack()

    def token_of(self, user: UserInfo) -> str:
        """A bearer token for a part of this process that sends requests as this user; good until the process ends."""
        return self._issued.issue(user)

    @property
    def sign_token(self) -> Callable[[dict[str, Any]], str] | None:
        """Makes of claims a token, signed as those of service accounts are; None where another process has the keys."""
        return self._keys.sign if isinstance(self._keys, OwnTokenKeys) else None

    def store(self, group: str, plural: str) -> Store[Any]:
        """The store of a resource. Raises KeyError for one that is not served or not stored."""
        assert self._stores is not None
        return self._stores.store(group, plural)

    def objects(self, group: str, plural: str) -> StoreObjects:
        """Typed access to a resource's objects. Raises KeyError."""
        assert self._stores is not None
        return self._stores.objects(group, plural)

    async def filled_objects(self, group: str, plural: str) -> StoreObjects:
        """The same once they are read, of a resource too that nobody asked for yet. Raises KeyError, StatusError."""
        await self.store(group, plural).warm()
        return self.objects(group, plural)

    async def offload(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `work` returns, run in the worker threads of this server."""
        return await self.account().offload_if(True, work, *args, **kwargs)

    def account(self, user: str = SERVER) -> Account:
        """Return the account on which a component of this process works, such as a controller."""
        return Account(self._threads, user)

    def serve(self, resource: Resource[Any, Services]) -> None:
        """Serves one more resource from now on, stored where the others are; its cache is filled on first use.

        Raises ValueError if another has its name in a group version, or is stored where it would be.
        """
        assert self.server is not None
        assert self._stores is not None
        assert self._services is not None
        if self.server.catalogue.entry(resource.group, resource.plural) is not None:
            raise ValueError(f"{resource.group_resource} is served already")
        bound = bind(resource, self._services)
        storage = self._stores.add(bound)
        try:
            self.server.catalogue.put(bound, storage)
        except ValueError:
            self._stores.take_out(resource.group, resource.plural)
            raise

    async def serve_custom(
        self, resource: Resource[Any, Services], serves: Serves, *, announced: bool = True, on: Implement | None = None
    ) -> None:
        """Serves a resource in the versions for which `serves` says so, in the place of the one of its name if there is
        one: the next request finds the new one, and watches of the old one end. Clients are told of a new one that is
        not `announced` by `announce`. What `on` makes implements it, if that is given, in place of a store.

        Raises ValueError if a built-in resource has its name, or is stored where it would be.
        """
        assert self.server is not None
        assert self._stores is not None
        assert self._services is not None
        bound = bind(resource, self._services)
        if on is not None:
            self.server.catalogue.put(bound, on(bound, self._services), serves=serves, announced=announced)
            return
        store, before = self._stores.replace(bound)
        try:
            self.server.catalogue.put(bound, store, serves=serves, announced=announced)
        except ValueError:
            if before is None:
                self._stores.take_out(resource.group, resource.plural)
            raise
        if before is not None:
            await before.stop()

    def reserve_names(self, group: str, names: CustomResourceDefinitionNames) -> None:
        """Keeps the names of a custom resource that is served without a definition: no definition gets them."""
        assert self._custom is not None
        self._custom.reserve(group, names)

    async def definitions_settled(self) -> None:
        """Returns once every definition of a custom resource that was stored has been looked at."""
        assert self._custom is not None
        await self._custom.settled()

    def announce(self, group: str, plural: str) -> None:
        """Tells clients of a resource that is served. Raises KeyError for one that is not."""
        assert self.server is not None
        self.server.catalogue.announce(group, plural)

    def tell_anew(self, group: str) -> None:
        """Says that what discovery tells of a group is not what it was."""
        assert self.server is not None
        self.server.catalogue.tell_anew(group)

    async def withdraw(self, group: str, plural: str) -> None:
        """Ends serving a resource, and its watches; what is stored of it stays. Raises KeyError if it is not served."""
        assert self.server is not None
        assert self._stores is not None
        self.server.catalogue.remove(group, plural)
        store = self._stores.take_out(group, plural)
        if store is not None:
            await store.stop()

    def snapshot(self) -> Snapshot:
        """Everything that is stored now. Raises TypeError for storage that is not in memory."""
        return self._memory().snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Brings back what a snapshot of this control plane holds; clients see it as writes. Raises TypeError."""
        assert self._upkeep is not None
        self._memory().restore(snapshot)
        await self._upkeep.repair_ports()
        await self.definitions_settled()

    async def stop_listening(self) -> None:
        """Closes all connections at once, and takes no more; requests in this process go on."""
        assert self.server is not None
        await self.server.abort()

    async def listen_anew(self) -> Address:
        """Listens again after `stop_listening`: on another port, if it is to take any. Raises OptionsError."""
        assert self.server is not None
        assert self._upkeep is not None
        await listen(self.server, self.options)
        await self._upkeep.follow_address()
        return self._announced(self.server.external_address.port)

    def _memory(self) -> MemoryStorage:
        if not isinstance(self.storage, MemoryStorage):
            raise TypeError("only storage in memory has snapshots")
        return self.storage

    async def start(self) -> Address:
        """Opens the storage, serves, and makes what a cluster has from the start.

        Raises OptionsError, OSError and the storage's errors; nothing is left running then.
        """
        try:
            with bound(self.account()):
                async with AsyncExitStack() as running:
                    address = await self._start(running)
                    self._running = running.pop_all()
        except BaseException as error:
            self.server = self.storage = None
            found = unreadable(self.options, self._stores or ())
            if found and is_storage_unavailable(error):
                raise StorageUnavailable("; ".join(found)) from None
            raise
        for each in unreadable(self.options, self._stores or ()):
            logger.error("%s", each)
        return address

    async def stop(self) -> None:
        """The orderly end; what was acknowledged is on disk."""
        if self._worker is not None and self._worker.is_replaced and self.server is not None:
            self.server.hooks.forget_pre_shutdown()
        if await self._has_successors():
            assert self.server is not None
            self.server.parting = PARTING
        await self._running.aclose()
        self.server = self.storage = None

    async def _has_successors(self) -> bool:
        """Return True if other servers go on, and nobody has set for how long this one does."""
        if self._agreement is None or self.server is None or self.options.shutdown_delay_duration:
            return False
        return self.server.http is not None and await self._agreement.has_others()

    async def _start(self, running: AsyncExitStack) -> Address:
        """Makes one part after the other. `running` ends those that run, the last of them first."""
        options, common, worker = self.options, Common(threads=self._threads), self._worker
        running.callback(self._threads.close)
        running.callback(common.executor.shutdown, wait=False, cancel_futures=True)
        watchdog = loop_watchdog(options, common)
        if watchdog is not None:
            running.callback(watchdog.stop)
        try:
            check_own(options.controllers)
        except ValueError as error:
            raise OptionsError(f"--controllers: {error}") from None
        check_kubelet_files(options)
        check_proxy_client(options)
        if worker is None:
            check_port(options)
        # files that are given are read before anything is written: a start that one of them ends leaves nothing behind
        ranges = service_ranges(options)
        host = public_address(options)
        check_families(options, ranges, host)
        audited = audit_rules(options)
        admission_configuration(options)
        check_serving_files(options)
        egress = egress_of(options, common)
        encryption = await encryption_of(options, common.registry, running)
        configured = configured_tokens(options, common.registry, running, egress)
        authorizers = AuthorizerChain(options, common.registry, egress)
        running.push_async_callback(authorizers.stop)
        rights = authorizers.judges
        make_data_folder(options)
        clusters = etcd_clusters(options, common.registry)
        open_it = open_storage if worker is None else worker.open_storage
        storage = self.storage = await open_it(options, clusters)  # first: it locks the folder
        running.push_async_callback(storage.close)
        if clusters is not None:
            await clusters.open_overrides(running)
        located, is_apart = (None, None) if clusters is None else (clusters.storage_of, clusters.is_apart)
        stores = self._stores = Stores(storage, encryption, options.storage_media_type, located, is_apart)
        running.push_async_callback(stores.stop)
        keys = self._keys = await token_keys(options, common.registry, running)  # ends before the folder's lock
        more = (LOOPBACK_NAME,) if options.tls_cert_file else ()
        files = self._files = certificate_files(options, host, str(ranges[0][1]), *more)
        token_use = TokenUse(lambda: stores.objects("", "secrets"))
        running.push_async_callback(token_use.stop)
        tokens = token_authenticator(options, keys, stores, self._issued, token_use.note, configured, common.registry)
        services = self._services = services_of(
            options, ranges, common, stores, rights, keys, tokens, self._itself, self._nearby, self._kubelets, egress
        )
        running.callback(services.proxied.close)
        running.callback(services.kubelet.close)
        runtime = RuntimeConfig(options.runtime_config)
        bound = [bind(each, services) for each in built_in_resources(runtime)]
        served = [(each, stores.add(each)) for each in bound]
        agreement = self._agreement = agreement_on(storage, stores) if storage.has_other_servers else None
        if agreement is not None:
            await agreement.join()
            running.push_async_callback(agreement.leave)
        await fill(stores, options)
        authorizers.feed(stores.store)
        admission = admission_of(options, common, stores, rights, services)
        running.callback(admission.close)
        recorder = auditor(
            options,
            audited,
            AuditMetrics(common.registry),
            common.executor,
            egress,
            None if worker is None else worker.lock,
        )
        if recorder is not None:
            running.push_async_callback(recorder.close)
        judge = authenticator(
            options, tokens, files, common.registry, None if configured.jwt is None else configured.jwt.anonymous
        )
        fair = FlowControl(options, stores, common.registry) if options.enable_priority_and_fairness else None
        config = server_config(options, common, host, files, judge, rights, admission, recorder)
        if fair is not None:
            running.push_async_callback(fair.stop)
            config.fairness, config.stored_objects = fair.fairness, fair.stored
        config.observe = self._observe
        server = self.server = Server(config.complete())
        for resource, implementation in served:
            server.catalogue.put(resource, implementation, serves=runtime.serves)
        GroupOrder(server.catalogue).follow(stores.store("apiregistration.k8s.io", "apiservices"))
        definitions = self._custom = self._definitions(stores, services, ConversionMetrics(common.registry), running)
        bootstrap = Bootstrap(
            server,
            stores.objects,
            service_range=ranges[0],
            authentication_info=lambda: authentication_info(options, files),
        )
        openapi = OpenAPIOnFirstUse(server)
        endpoints = reconciler_of(options, stores.storage_of(SERVER_LEASES), stores.objects)
        kubernetes = KubernetesService(server, stores.objects, endpoints, ranges[0])
        upkeep = self._upkeep = Upkeep(
            server,
            stores,
            services,
            bootstrap,
            kubernetes,
            lambda: openapi.remote,
            options.controllers,
            keeps_lease=worker is None or worker.is_first,
            shared=storage if storage.has_other_servers else None,
        )
        running.push_async_callback(upkeep.stop)
        running.push_async_callback(server.stop)
        self._add_checks(server, stores)
        if encryption is not None:
            encryption.install(server)
        if clusters is not None:
            clusters.install(server, running)
            checks = CacheChecks(stores, clusters.keys_of)
            running.push_async_callback(checks.periodic.stop)
            checks.periodic.start()
        aggregator = Aggregator(
            server,
            stores.store,
            stores.objects,
            common.registry,
            lambda: openapi.remote,
            aggregation_of(options, egress),
            nearby=self._nearby,
        )
        running.push_async_callback(aggregator.stop)
        _install_seats(server, fair)
        definitions.install(server.add_post_start_hook)
        bootstrap.install()
        kubernetes.install()
        upkeep.install()
        aggregator.install()
        bootstrap.install_registration()
        aggregator.install_openapi()
        if worker is not None:
            worker.install(server, storage, stores.late.behind)
        if storage.has_other_servers:
            arrivals = Arrivals(storage, None if clusters is None else clusters.ask)
            running.push_async_callback(arrivals.stop)
            server.arrival = Arrival(arrivals.arrived, stores.late.behind, costs=True)
        server.prepare_run()
        Discovery(server).install(defined=True)
        await keys.made()
        keys.install_openid(server)
        openapi.install()
        install_debug_paths(server, options.as_flags() if worker is None else worker.given.flags)
        install_basic_paths(server)
        install_metrics(common.registry, stores, server)
        install_storage_metrics(
            common.registry, stores, counts_objects=options.etcd_count_metric_poll_period > 0, file=file_of(options)
        )
        install_refusals(common.registry, [storage] if clusters is None else clusters.storages)
        if watchdog is not None:
            if options.profiling and options.contention_profiling:
                from steersman.server.profiling import install_contention_profiling

                install_contention_profiling(server, watchdog.holds)
            watchdog.start()
        await definitions.start()  # no client is to find that a resource is not there yet
        aggregator.follow()
        if worker is not None:
            worker.listen(server)
        elif options.listen:
            await listen(server, options)
        await server.run_post_start_hooks()
        if fair is not None:
            await fair.begin()
        upkeep.follow()
        if agreement is not None:
            agreement.begin()
        authorizers.follow(server_id(socket.gethostname()))
        return self._announced(server.external_address.port)

    def _announced(self, port: int) -> Address:
        """Where it is, which the administrator's kubeconfig says from now on."""
        assert self._files is not None
        url = f"https://{reachable_address(self.options.bind_address)}:{port}"
        kubeconfig = self.options.data_dir / "admin.kubeconfig"
        name = LOOPBACK_NAME if self.options.tls_cert_file else ""
        write_whole(kubeconfig, admin_kubeconfig(url, self._files, name))
        return Address(url, kubeconfig, self._files.ca, self._files.ca_key)

    def _own_server(self) -> OwnServer:
        """What this server asks itself with, once it is there."""
        assert self.server is not None
        return OwnServer(self.server.handler)

    def _definitions(
        self, stores: Stores, services: Services, metrics: ConversionMetrics, running: AsyncExitStack
    ) -> Definitions:
        announcing = CustomAPIServices(stores.objects("apiregistration.k8s.io", "apiservices"))
        key = ("apiextensions.k8s.io", "customresourcedefinitions")
        definitions = Definitions(stores.store(*key), stores.objects(*key), self, announcing, services, metrics)
        assert self.server is not None
        self.server.behind = definitions.behind
        running.push_async_callback(announcing.stop)
        running.push_async_callback(definitions.stop)
        announcing.start()
        return definitions

    def _add_checks(self, server: Server, stores: Stores) -> None:
        loopback = HealthCheck("loopback-serving-certificate", lambda: None)  # requests to itself need no certificate
        server.healthz.add(loopback)
        server.livez.add(loopback)
        for name in _STARTED_BEFORE_HOOKS:
            server.add_post_start_hook(name, _nothing_to_start)
        health, ready = self.options.etcd_healthcheck_timeout, self.options.etcd_readycheck_timeout
        server.add_checks(HealthCheck("etcd", lambda: wrong_with(self.storage, health)))
        needed = [stores.store(*key) for key in _READ_BY_THE_SERVER]
        server.add_checks(
            HealthCheck("etcd-readiness", lambda: not_ready(self.storage, ready)),
            HealthCheck(
                "informer-sync",
                lambda: next((f"{each.resource.plural} not synced" for each in needed if not each.cacher.ready), None),
            ),
            only_ready=True,
        )


def _install_seats(server: Server, fair: FlowControl | None) -> None:
    """Adds the hooks of what bounds the requests that are worked on."""
    if fair is not None:
        fair.install(server)
    else:
        server.add_post_start_hook("max-in-flight-filter", _nothing_to_start)


async def _nothing_to_start() -> None:
    """Stand for a hook whose part runs already."""
