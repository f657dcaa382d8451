"""Parts that serve: the generic API server, its health checks and paths, and its listening socket."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from steersman.controlplane.addresses import listen
from steersman.controlplane.authenticators import proxy_headers
from steersman.controlplane.data_folder import file_of
from steersman.controlplane.flag_files import serving_tls
from steersman.controlplane.flow_control import FlowControl
from steersman.controlplane.group_order import GroupOrder
from steersman.controlplane.identity_lease import server_id
from steersman.controlplane.metrics import install_metrics
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.parts.admitting import Admission, Audit, PriorityAndFairness
from steersman.controlplane.parts.basis import Common, Embedding, LoopWatch, ValidatedFlags
from steersman.controlplane.parts.identity import Authentication, Authorization, Certificates, SigningKeys
from steersman.controlplane.parts.resources import BuiltInResources
from steersman.controlplane.parts.storing import EncryptionAtRest, ObjectStores, OpenStorage
from steersman.controlplane.storage_health import not_ready, storage_fault
from steersman.controlplane.storage_metrics import install_refusals, install_storage_metrics
from steersman.endpoints.filters.consistency import ConsistencyWait
from steersman.net.limits import Limits
from steersman.openapi.lazy_service import LazyOpenAPIService
from steersman.server.basic_paths import install_basic_paths
from steersman.server.config import Config
from steersman.server.debug_paths import install_debug_paths
from steersman.server.discovery import Discovery
from steersman.server.health import HealthCheck
from steersman.server.request_paths import install_request_paths
from steersman.server.request_traces import RequestTraces
from steersman.server.server import Server
from steersman.work.extras import MissingExtra
from steersman.work.first_use import on_first_use
from steersman.work.offloading import offload_if
from steersman.work.parts import Part, offered

if TYPE_CHECKING:
    from steersman.faults.fault_set import FaultSet

_MOST_STREAMS: Final = (1 << 31) - 1
"""The largest possible limit: HTTP/2 has no higher number of streams."""
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
"""Resources that decisions about requests depend on: without their caches no answer would be right."""
_STARTED_BEFORE_HOOKS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "storage-object-count-tracker-hook",
    "peer-endpoint-reconciler-controller",
    "storage-readiness",
)
"""Hooks of kube-apiserver for parts that run here before the server listens: admission, its caches, object counts,
leases of peers, and the wait for storage.
"""


class GenericServer(Part):
    """The generic API server with the built-in resources, without filters and not listening yet."""

    options: Options
    embedding: Embedding
    common: Common
    flags: ValidatedFlags
    certificates: Certificates
    authentication: Authentication
    authorization: Authorization
    admission: Admission
    audit: Audit | None
    priority: PriorityAndFairness | None
    opened: OpenStorage
    objects: ObjectStores
    built_in: BuiltInResources
    server: Server = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        config = self._config()
        control = None if self.priority is None else self.priority.control
        if control is not None:
            config.fairness, config.stored_objects = control.fairness, control.stored
        server = self.server = Server(config.complete())
        for resource, implementation in self.built_in.served:
            server.catalogue.put(resource, implementation, serves=self.built_in.runtime.serves)
        GroupOrder(server.catalogue).follow(self.objects.stores.store("apiregistration.k8s.io", "apiservices"))
        _install_seats(server, control)

    def _config(self) -> Config:
        options, common = self.options, self.common
        streams = options.http2_max_streams_per_connection
        return Config(
            auditor=None if self.audit is None else self.audit.auditor,
            authenticator=self.authentication.authenticator,
            proxy_headers=proxy_headers(options),
            authorizer=self.authorization.chain.interfaces.authorizer,
            admission=self.admission.chain,
            bind_address=options.bind_address,
            port=options.secure_port,
            shares_port=options.permit_port_sharing,
            external_host=self.flags.host,
            limits=Limits(max_streams=min(streams, _MOST_STREAMS)) if streams > 0 else Limits(),
            tls=serving_tls(options, self.certificates.files),
            request_timeout=options.request_timeout,
            min_request_timeout=options.min_request_timeout,
            max_requests_in_flight=options.max_requests_inflight,
            max_mutating_requests_in_flight=options.max_mutating_requests_inflight,
            goaway_chance=options.goaway_chance,
            cors_allowed_origins=options.cors_allowed_origins,
            strict_transport_security=",".join(options.strict_transport_security_directives),
            shutdown_send_retry_after=options.shutdown_send_retry_after,
            shutdown_delay=options.shutdown_delay_duration,
            log_requests=options.verbosity >= 3,
            profiling=options.profiling,
            mapper=common.mapper,
            observe=self.embedding.observe,
            faults=self._faults(),
            records_origins=self.opened.storage.keeps_records,
            registry=common.registry,
            executor=common.executor,
            threads=common.threads,
        )

    def _faults(self) -> FaultSet | None:
        """Return the faults of requests, with the storage whose past they read."""
        faults = self.embedding.faults
        if faults is not None:
            faults.storage = self.opened.storage
        return faults


class ExportedTraces(Part):
    """The export of traces by OTLP; spans of the last requests are exported at the end."""

    flags: ValidatedFlags
    generic: GenericServer

    async def start(self, ending: AsyncExitStack) -> None:
        if self.flags.exports_traces is None:
            return
        from steersman.server.trace_export import TraceExport

        try:
            instance = server_id(socket.gethostname())
            export = await offload_if(True, TraceExport, *self.flags.exports_traces, instance)
        except MissingExtra as error:
            raise OptionsError(f"--tracing-config-file: {error}") from None
        self.generic.server.traces.add(export)
        ending.push_async_callback(offload_if, True, export.close)


def _install_seats(server: Server, control: FlowControl | None) -> None:
    """Add the hooks of the limit of concurrent requests."""
    if control is not None:
        control.install(server)
    else:
        server.add_post_start_hook("max-in-flight-filter", _nothing_to_start)


async def _nothing_to_start() -> None:
    """Do nothing: a hook for a part that runs already."""


class OpenAPI(Part):
    """The OpenAPI documents, created on first use; `Paths` serves them."""

    generic: GenericServer
    paths: LazyOpenAPIService = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        self.paths = LazyOpenAPIService(self.generic.server)


class RequestsEnd(Part):
    """Graceful end of requests: running requests are answered while all parts before this one still run."""

    generic: GenericServer

    async def start(self, ending: AsyncExitStack) -> None:
        ending.push_async_callback(self.generic.server.stop)


class HealthChecks(Part):
    """The checks behind /healthz, /livez and /readyz."""

    options: Options
    opened: OpenStorage
    objects: ObjectStores
    at_rest: EncryptionAtRest
    generic: GenericServer

    async def start(self, ending: AsyncExitStack) -> None:
        server, storage, options = self.generic.server, self.opened.storage, self.options
        loopback = HealthCheck("loopback-serving-certificate", lambda: None)  # requests to itself need no certificate
        server.healthz.add(loopback)
        server.livez.add(loopback)
        for name in _STARTED_BEFORE_HOOKS:
            server.add_post_start_hook(name, _nothing_to_start)
        server.add_checks(HealthCheck("etcd", lambda: storage_fault(storage, options.etcd_healthcheck_timeout)))
        needed = [self.objects.stores.store(*key) for key in _READ_BY_THE_SERVER]
        server.add_checks(
            HealthCheck("etcd-readiness", lambda: not_ready(storage, options.etcd_readycheck_timeout)),
            HealthCheck(
                "informer-sync",
                lambda: next((f"{each.resource.plural} not synced" for each in needed if not each.cacher.ready), None),
            ),
            only_ready=True,
        )
        if self.at_rest.encryption is not None:
            self.at_rest.encryption.install(server)
        if self.opened.clusters is not None:
            self.opened.clusters.install(server, ending)


class OtherWriters(Part):
    """Consistency with other processes on the same storage: requests wait for writes that those have acknowledged."""

    embedding: Embedding
    opened: OpenStorage
    objects: ObjectStores
    generic: GenericServer

    async def start(self, ending: AsyncExitStack) -> None:
        storage, clusters, server = self.opened.storage, self.opened.clusters, self.generic.server
        behind = self.objects.stores.lagging.wait_for
        if self.embedding.worker is not None:
            self.embedding.worker.install(server, storage, behind)
        if storage.has_other_servers:
            from steersman.storage.write_barrier import WriteBarrier  # which most servers never need

            sole = None if clusters is None else clusters.sole_server()
            is_alone = (lambda: False) if sole is None else (lambda: sole.is_alone)
            barrier = WriteBarrier(storage, None if clusters is None else clusters.ask, is_alone=is_alone)
            ending.push_async_callback(barrier.stop)
            may_write = (lambda: None) if sole is None else sole.may_write
            server.consistency_wait = ConsistencyWait(barrier.wait_for_newest, behind, costs=True, may_write=may_write)
            if sole is not None:
                ending.push_async_callback(sole.stop)
                await sole.start()


class Paths(Part):
    """The filters around the server, and all paths except resources: discovery, OpenAPI, metrics."""

    options: Options
    embedding: Embedding
    common: Common
    watch: LoopWatch | None
    opened: OpenStorage
    objects: ObjectStores
    signing: SigningKeys
    authorization: Authorization
    generic: GenericServer
    openapi: OpenAPI

    async def start(self, ending: AsyncExitStack) -> None:
        server, options, worker = self.generic.server, self.options, self.embedding.worker
        server.prepare_run()
        Discovery(server).install(defined=True)
        await self.signing.keys.wait_until_available()
        self.signing.keys.install_openid(server)
        self.openapi.paths.install()
        install_debug_paths(server, options.as_flags() if worker is None else worker.settings.flags)
        if options.profiling:
            one = "" if worker is None else f"{worker.settings.number + 1} of {worker.settings.options.workers}"
            roles = self.authorization.chain.interfaces.roles
            install_request_paths(server, RequestTraces(server.traces), roles.rule_behind, one)
        install_basic_paths(server)
        self._install_history()
        self._install_metrics()
        watchdog = None if self.watch is None else self.watch.watchdog
        if watchdog is not None:
            if options.profiling and options.contention_profiling:
                from steersman.server.profiling import install_contention_profiling

                install_contention_profiling(server, watchdog.holds)
            watchdog.start()

    def _install_history(self) -> None:
        options, storage = self.options, self.opened.storage
        kind = "etcd" if options.etcd_servers else options.storage
        bounds = str(options.history) if storage.keeps_records else ""
        server, removed = self.generic.server, self.objects.stores.storage_of_removed
        answer = partial(
            on_first_use("steersman.server.history.paths", "answer"), server, storage, removed, kind, bounds
        )
        server.add_path("/debug/history", answer, listed=False)
        server.add_prefix("/debug/history/", answer)

    def _install_metrics(self) -> None:
        registry, stores, opened = self.common.registry, self.objects.stores, self.opened
        install_metrics(registry, stores, self.generic.server)
        counts_objects = self.options.etcd_count_metric_poll_period > 0
        install_storage_metrics(registry, stores, counts_objects=counts_objects, file=file_of(self.options))
        install_refusals(registry, [opened.storage] if opened.clusters is None else opened.clusters.storages)


class Listening(Part):
    """The listening socket, or the connections passed to a worker."""

    options: Options
    embedding: Embedding
    generic: GenericServer

    async def start(self, ending: AsyncExitStack) -> None:
        if self.embedding.worker is not None:
            self.embedding.worker.listen(self.generic.server)
        elif self.options.listen:
            await listen(self.generic.server, self.options)
