"""Assembly of a library's server: the parts of a control plane that its resources need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steersman.admission.interface import Chain
from steersman.authentication.issued_tokens import IssuedTokens
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.controlplane.addresses import advertised_address, check_port, listen, reachable_address
from steersman.controlplane.data_folder import certificate_files, make_data_folder, open_storage
from steersman.controlplane.flag_files import serving_tls
from steersman.controlplane.options import Options
from steersman.controlplane.stores import Stores
from steersman.library.aggregation import Aggregation, ClusterError, manifests
from steersman.library.checked import check_definitions
from steersman.library.custom import resource_of_declaration
from steersman.library.declaration import Declaration
from steersman.library.hooked import objects_of
from steersman.library.models import Plain
from steersman.machinery.errors.status import forbidden
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.large_work import nesting
from steersman.machinery.metrics import Registry
from steersman.machinery.private_files import read_private, write_whole
from steersman.net.message import Handler
from steersman.net.tls import ServerTLS
from steersman.openapi.lazy_service import LazyOpenAPIService
from steersman.registry.services import Services
from steersman.rest.bound import BoundResource, bind
from steersman.rest.capabilities import ResourceStorage
from steersman.rest.context import LOOPBACK
from steersman.server.basic_paths import install_basic_paths
from steersman.server.certificates import CertificateFiles, admin_kubeconfig
from steersman.server.config import Config, new_executor
from steersman.server.discovery import Discovery
from steersman.server.health import HealthCheck
from steersman.server.server import Server
from steersman.storage.interface import Storage
from steersman.work.offloading import Account, bound, offload_if
from steersman.work.threads import WorkerThreads

if TYPE_CHECKING:
    from steersman.library.environment import ServerEnvironment

_BUNDLE: Final = "cluster-authorities.crt"
_Serves = Callable[[str, str, str], bool]
"""(group, version, plural) -> True if the resource is served in the version."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A started server and its address."""

    server: Server
    bind_address: str
    token: str
    """The token of the server's own requests."""

    @property
    def url(self) -> str:
        """The URL for clients on this host."""
        return f"https://{reachable_address(self.bind_address)}:{self.server.external_address.port}"

    @property
    def handler(self) -> Handler:
        """The whole server as a handler of HTTP requests."""
        return self.server.handler


async def start_server(
    settings: dict[str, Any],
    declarations: Sequence[Declaration],
    aggregation: Aggregation | None,
    kubeconfig: Path,
    running: AsyncExitStack,
) -> RunningServer:
    """Start a server of declared resources. Raises what the library's Server.start does.

    `settings` are fields of Options. The administrator's `kubeconfig` is written if the server listens and is not
    aggregated. `running` gets the callbacks that stop the parts.
    """
    nesting.raise_recursion_limit()
    options = Options(**settings)
    check_port(options)
    make_data_folder(options)
    threads = WorkerThreads()
    running.callback(threads.close)
    with bound(Account(threads)):  # the storage delivers its events in this context
        storage = await open_storage(options)
        running.push_async_callback(storage.close)
        return await _start(options, storage, declarations, aggregation, kubeconfig, threads, running)


async def _start(
    options: Options,
    storage: Storage,
    declarations: Sequence[Declaration],
    aggregation: Aggregation | None,
    kubeconfig: Path,
    threads: WorkerThreads,
    running: AsyncExitStack,
) -> RunningServer:
    stores = Stores(storage)
    running.push_async_callback(stores.stop)
    files = own_files(options, aggregation)
    issued = IssuedTokens(options.audiences if aggregation is None else ())
    if aggregation is None:
        environment = _standalone(options, issued)
    else:
        options, environment = await _aggregated(options, aggregation, files, issued)
    running.push_async_callback(environment.stop)
    parts = Parts(options, storage, stores, declarations, environment, threads, running)
    server = await parts.build(serving_tls(options, files))
    started = RunningServer(server, options.bind_address, issued.issue(LOOPBACK))
    if options.listen:
        await listen(server, options)
    await server.run_post_start_hooks()
    if aggregation is not None and aggregation.register:
        port = server.external_address.port
        await register(aggregation, list(manifests(aggregation, declarations, files.ca.read_bytes(), port)))
    elif aggregation is None and options.listen:
        _write_if_changed(kubeconfig, admin_kubeconfig(started.url, files))
    return started


def _write_if_changed(path: Path, data: bytes) -> None:
    """Write a file readable only by its owner, unless it has this content already. Raises OSError."""
    try:
        if read_private(path) == data:
            return
    except FileNotFoundError:
        pass
    write_whole(path, data)


def own_files(options: Options, aggregation: Aggregation | None) -> CertificateFiles:
    """Return the server's certificates, created if they do not exist. Raises OptionsError."""
    names = () if aggregation is None else (aggregation.host,)
    return certificate_files(options, advertised_address(options.bind_address), *names)


async def register(aggregation: Aggregation, objects: Sequence[Plain]) -> None:
    """Apply the registration objects to the cluster. Raises ClusterError."""
    from steersman.library.aggregated.cluster import find_cluster
    from steersman.machinery.errors.status import StatusError

    cluster = find_cluster(aggregation.kubeconfig)
    try:
        await cluster.apply(objects)
    except StatusError as error:
        raise ClusterError(f"the server cannot be registered: {error}") from None
    finally:
        await cluster.aclose()


def _standalone(options: Options, issued: IssuedTokens) -> ServerEnvironment:
    from steersman.library.standalone import StandaloneEnvironment

    return StandaloneEnvironment(options, issued)


async def _aggregated(
    options: Options, aggregation: Aggregation, files: CertificateFiles, issued: IssuedTokens
) -> tuple[Options, ServerEnvironment]:
    """Return the environment of an aggregated server, and options with the cluster's client authorities for TLS.

    Raises ClusterError, OSError.
    """
    from steersman.library.aggregated.cluster import find_cluster
    from steersman.library.aggregated.environment import AggregatedEnvironment

    bundle = options.data_dir / _BUNDLE
    environment = AggregatedEnvironment(find_cluster(aggregation.kubeconfig), bundle, files.ca.read_bytes(), issued)
    try:
        await environment.start()
    except BaseException:
        await environment.stop()
        raise
    return replace(options, client_ca_file=str(bundle)), environment


class Parts:
    """Builds the server from its parts; `running` stops them in reverse order."""

    def __init__(
        self,
        options: Options,
        storage: Storage,
        stores: Stores,
        declarations: Sequence[Declaration],
        environment: ServerEnvironment,
        threads: WorkerThreads,
        running: AsyncExitStack,
    ) -> None:
        self._options = options
        self._storage = storage
        self._declarations = declarations
        self._environment = environment
        self._running = running
        self._threads = threads
        self._stores = stores

    async def build(self, tls: ServerTLS | None) -> Server:
        """Return the server, which does not listen yet. Raises OptionsError, DefinitionError."""
        options, running, stores = self._options, self._running, self._stores
        environment = self._environment
        executor, mapper = new_executor(), RESTMapper()
        running.callback(executor.shutdown, wait=False, cancel_futures=True)
        await offload_if(True, check_definitions, self._declarations, options.data_dir)
        services = _services(options, stores, environment)
        built_in = [bind(each, services) for each in environment.resources]
        served: list[tuple[BoundResource[Any], ResourceStorage, _Serves]] = [
            (each, stores.add(each), _serves_v1) for each in built_in
        ]
        for each in self._declarations:
            bound = bind(resource_of_declaration(each), services)
            served.append((bound, self._storage_of(each, bound, services), each.serves))
        await stores.start()
        admission = Chain((environment.lifecycle(stores),))
        running.callback(admission.close)
        config = Config(
            authenticator=environment.authenticator,
            proxy_headers=environment.proxy_headers,
            authorizer=environment.rights.authorizer,
            admission=admission,
            bind_address=options.bind_address,
            port=options.secure_port,
            tls=tls,
            mapper=mapper,
            registry=Registry(),
            executor=executor,
            threads=self._threads,
            profiling=False,
        )
        server = Server(config.complete())
        for resource, implementation, serves in served:
            server.catalogue.put(resource, implementation, serves=serves)
        running.push_async_callback(server.stop)
        server.add_checks(HealthCheck("storage", lambda: self._storage.refusal or None))
        environment.install(server, stores)
        server.prepare_run()
        Discovery(server).install()
        LazyOpenAPIService(server).install()
        install_basic_paths(server)
        return server

    def _storage_of(self, declaration: Declaration, bound: BoundResource[Any], services: Services) -> ResourceStorage:
        if declaration.storage is None:
            return self._stores.add(bound)
        from steersman.library.custom_storage import custom_storage

        return custom_storage(declaration, bound, partial(objects_of, services))


def _serves_v1(group: str, version: str, plural: str) -> bool:
    return version == "v1"


def _services(options: Options, stores: Stores, environment: ServerEnvironment) -> Services:
    rights = environment.rights
    return Services(
        objects=stores.objects,
        storage_of=stores.storage_of,
        authorizer=rights.authorizer,
        rule_resolver=rights.rule_resolver,
        roles=rights.roles,
        service_cluster_ip_ranges=(),
        service_node_ports=range(0),
        allow_privileged=False,
        service_account_issuer=options.service_account_issuer[0],
        api_audiences=options.audiences,
        sign_token=_no_tokens,
        event_ttl=options.event_ttl,
        authenticate_token=environment.tokens.authenticate_token,
    )


def _no_tokens(claims: dict[str, Any]) -> str:
    raise forbidden(GroupResource("", "serviceaccounts"), "", "this server has no service accounts")
