"""The whole API server: storage, stores, the server with its catalogue, and what runs around them."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authentication.bearer_token import BearerTokenAuthenticator
from steersman.authentication.client_certificate import ClientCertificateAuthenticator
from steersman.authentication.interface import Authenticator, TokenAuthenticator
from steersman.authentication.service_account_claims import BoundObjects, Find, Named
from steersman.authentication.service_account_keys import ServiceAccountKeys, default_jwks_uri
from steersman.authentication.service_account_tokens import ServiceAccountTokens, sign
from steersman.authentication.token_cache import CachedTokenAuthenticator
from steersman.authentication.token_file import StaticTokens, TokenFileError
from steersman.authentication.union import UnionAuthenticator, UnionTokenAuthenticator
from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.authorization.always_deny import AlwaysDenyAuthorizer
from steersman.authorization.interface import Authorizer
from steersman.authorization.rbac import RbacAuthorizer
from steersman.authorization.system_masters import PrivilegedGroupAuthorizer
from steersman.authorization.union import UnionAuthorizer, UnionRuleResolver
from steersman.controlplane.admission import Surroundings, admission_chain
from steersman.controlplane.admission_configuration import AdmissionConfiguration
from steersman.controlplane.bootstrap import Bootstrap
from steersman.controlplane.given_files import check_kubelet_files, service_account_keys, serving_tls
from steersman.controlplane.group_order import GroupOrder
from steersman.controlplane.metrics import install_metrics
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.rbac_feed import feed
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.controlplane.runtime_config import RuntimeConfig
from steersman.controlplane.stores import Stores
from steersman.controlplane.upkeep import Upkeep
from steersman.endpoints.discovery import ServedResource
from steersman.machinery.go.strings import trim_space
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.large_work import nesting
from steersman.machinery.large_work.slow_lane import SlowLane
from steersman.machinery.metrics import Registry
from steersman.machinery.private_files import make_private_folder, write_whole
from steersman.machinery.validation.ip import unmapped
from steersman.net.ascii import is_digits
from steersman.openapi.first_use import OpenAPIOnFirstUse
from steersman.registry.kubelet import ADDRESS_TYPES, KubeletConnection
from steersman.registry.services import Services
from steersman.rest.bound import bind
from steersman.rest.objects import Reading
from steersman.rest.resource import Resource
from steersman.server.basic_paths import install_basic_paths, install_openid
from steersman.server.certificates import CertificateError, CertificateFiles, admin_kubeconfig, ensure_certificates
from steersman.server.config import Config
from steersman.server.debug_paths import install_debug_paths
from steersman.server.discovery import Discovery
from steersman.server.health import HealthCheck
from steersman.server.server import Server
from steersman.storage.interface import Storage, StorageUnavailable
from steersman.storage.memory import MemoryStorage
from steersman.storage.sqlite import SQLiteStorage
from steersman.store.store import Store

if TYPE_CHECKING:
    from steersman.server.loop_watchdog import LoopWatchdog

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a started control plane is reached, and the files that clients need."""

    url: str
    kubeconfig: Path
    ca: Path


_READ_BY_THE_SERVER: Final = (
    ("", "namespaces"), ("", "nodes"), ("", "pods"), ("", "secrets"), ("", "serviceaccounts"), ("", "services"),
    ("node.k8s.io", "runtimeclasses"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"), ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"), ("rbac.authorization.k8s.io", "roles"),
    ("scheduling.k8s.io", "priorityclasses"),
)  # fmt: skip
"""What judges requests: without their caches no answer is right."""


class ControlPlane:
    """A control plane: `await start()`, then `await stop()`. Made from Options; nothing is touched before `start`."""

    def __init__(self, options: Options) -> None:
        nesting.make_room()
        self.options = options
        self.storage: Storage | None = None
        self.server: Server | None = None
        self._stores: Stores | None = None
        self._services: Services
        self._slow_lane = SlowLane()
        self._rbac = RbacAuthorizer(self._slow_lane)
        self._upkeep: Upkeep | None = None
        self._loop_watchdog: LoopWatchdog | None = None
        self._keys: ServiceAccountKeys
        self._making_keys: asyncio.Task[ServiceAccountKeys] | None = None

    def store(self, group: str, plural: str) -> Store[Any]:
        """The store of a resource. Raises KeyError for one that is not served or not stored."""
        assert self._stores is not None
        return self._stores.store(group, plural)

    def objects(self, group: str, plural: str) -> StoreObjects:
        """Typed access to a resource's objects. Raises KeyError."""
        assert self._stores is not None
        return self._stores.objects(group, plural)

    def serve(self, resource: Resource[Any, Services]) -> None:
        """Serves one more resource from now on, stored where the others are; its cache is filled on first use.

        Raises ValueError if another has its name in a group version.
        """
        assert self.server is not None
        assert self._stores is not None
        key = (resource.group, resource.plural)
        if self.server.catalogue.entry(*key) is not None:
            raise ValueError(f"{resource.group_resource} is served already")
        bound = bind(resource, self._services)
        self.server.catalogue.put(bound, self._stores.add(bound))

    async def withdraw(self, group: str, plural: str) -> None:
        """Ends serving a resource, and its watches; what is stored of it stays. Raises KeyError if it is not served."""
        assert self.server is not None
        assert self._stores is not None
        self.server.catalogue.remove(group, plural)
        await self._stores.remove(group, plural)

    async def start(self) -> Address:
        """Opens the storage, serves, and makes what a cluster has from the start.

        Raises OptionsError, OSError and the storage's errors; nothing is left running then.
        """
        try:
            address = await self._start()
        except BaseException as error:
            unreadable = self._unreadable()
            await self.stop()
            if unreadable and _is_storage_unavailable(error):
                raise StorageUnavailable("; ".join(unreadable)) from None
            raise
        for each in self._unreadable():
            logger.error("%s", each)
        return address

    def _unreadable(self) -> list[str]:
        """What the caches found that they cannot read, with what can be done about it."""
        file = self.options.data_dir / "steersman.db"
        return [
            f"in {file} the object {store.cacher.unreadable}: nothing under {store.prefix} is served until a good copy "
            "of the file is put back, or the object is removed from it while the server is stopped: "
            f"sqlite3 {file} \"DELETE FROM log WHERE key = '{store.cacher.unreadable.partition(' ')[0]}'\""
            for store in self._stores or ()
            if store.cacher.unreadable
        ]

    async def _start(self) -> Address:
        options = self.options
        check_kubelet_files(options)
        _make_folder(options.data_dir)
        ranges = _service_ranges(options)
        self.storage = await self._open_storage()  # first: it locks the folder
        self._making_keys = asyncio.create_task(asyncio.to_thread(service_account_keys, options))
        host = options.advertise_address or _advertised(options.bind_address)
        try:
            files = ensure_certificates(options.data_dir, [host, str(ranges[0][1])])
        except CertificateError as error:
            raise OptionsError(str(error)) from None
        tokens = self._token_authenticator()
        self._stores = stores = Stores(self.storage, self._slow_lane)
        self._services = services = self._make_services(tokens, ranges)
        runtime = RuntimeConfig(options.runtime_config)
        resources = (*AGGREGATOR, *_kube_api(runtime), *API_EXTENSIONS)
        bound = [bind(resource, services) for resource in resources]
        served = [(each, stores.add(each)) for each in bound]
        await stores.start()
        feed(self._rbac, self.store, self._slow_lane)
        config = self._config(services.authorizer, tokens, files).complete()
        self.server = server = Server(config)
        for each, storage in served:
            server.catalogue.put(each, storage, serves=runtime.serves)
        order = GroupOrder(server.catalogue)
        order.follow(self.store("apiregistration.k8s.io", "apiservices"))
        group_versions = {(one.group, one.version) for one in server.catalogue.served()}
        bootstrap = Bootstrap(
            self.objects, service_range=str(ranges[0]), first_ip=ranges[0][1], group_versions=group_versions
        )
        self._add_checks(server)
        bootstrap.install(server)
        server.add_checks(HealthCheck("autoregister-completion", bootstrap.unregistered))
        self._upkeep = Upkeep(
            services, bootstrap, self.store, self.objects, lambda: f"{bootstrap.address}:{bootstrap.port}"
        )
        self._upkeep.install(server)
        server.prepare_run()
        Discovery(server).install()
        self._keys = await self._making_keys
        issuer = options.service_account_issuer[0]
        install_openid(
            server,
            lambda: self._keys.openid_configuration(
                issuer, options.service_account_jwks_uri or default_jwks_uri(f"{bootstrap.address}:{bootstrap.port}")
            ),
            lambda: self._keys.jwks,
        )
        OpenAPIOnFirstUse(server).install()
        install_debug_paths(server, options.as_flags())
        install_basic_paths(server)
        install_metrics(config.registry, stores, lambda: server.http)
        self._watch_loop(config.registry)
        port = await _listen(server, options) if options.listen else options.secure_port
        bootstrap.address, bootstrap.port = host, port
        bootstrap.authentication_info = self._authentication_info(files)
        await server.run_post_start_hooks()
        self._upkeep.follow()
        return self._announce(files, port)

    def _announce(self, files: CertificateFiles, port: int) -> Address:
        url = f"https://{_reachable(self.options.bind_address)}:{port}"
        kubeconfig = self.options.data_dir / "admin.kubeconfig"
        write_whole(kubeconfig, admin_kubeconfig(url, files))
        return Address(url, kubeconfig, files.ca)

    def _watch_loop(self, registry: Registry) -> None:
        if self.options.debug_loop_watchdog:
            from steersman.server.loop_watchdog import LoopWatchdog  # which most servers never need

            self._loop_watchdog = LoopWatchdog(self.options.debug_loop_watchdog, registry)
            self._loop_watchdog.start()

    async def stop(self) -> None:
        """The orderly end; what was acknowledged is on disk."""
        if self.server is not None:
            await self.server.stop()
        if self._upkeep is not None:
            await self._upkeep.stop()
        if self._making_keys is not None:
            await asyncio.gather(self._making_keys, return_exceptions=True)  # before the lock of the folder is released
        if self._stores is not None:
            await self._stores.stop()
        if self.storage is not None:
            await self.storage.close()
        if self._loop_watchdog is not None:
            self._loop_watchdog.stop()
        if self.server is not None:
            self.server.config.executor.shutdown(wait=False, cancel_futures=True)
        self._slow_lane.close()
        self.server = self.storage = None

    async def _open_storage(self) -> Storage:
        interval = self.options.etcd_compaction_interval
        if self.options.storage == "memory":
            return await MemoryStorage.open(compaction_interval=interval)
        return await SQLiteStorage.open(self.options.data_dir / "steersman.db", compaction_interval=interval)

    def _make_services(self, tokens: UnionTokenAuthenticator, ranges: list[IPv4Network | IPv6Network]) -> Services:
        options = self.options
        first, last = _ports(options.service_node_port_range)
        return Services(
            objects=self.objects,
            authorizer=self._authorizer(),
            roles=self._rbac,
            rule_resolver=UnionRuleResolver((self._rbac,) if "RBAC" in options.authorization_mode else ()),
            service_cluster_ip_ranges=tuple(ranges),
            service_node_ports=range(first, last + 1),
            allow_privileged=options.allow_privileged,
            service_account_issuer=options.service_account_issuer[0],
            api_audiences=options.api_audiences or options.service_account_issuer,
            sign_token=lambda claims: sign(self._keys, claims),
            max_token_expiration=options.service_account_max_token_expiration,
            extend_token_expiration=options.service_account_extend_token_expiration,
            event_ttl=options.event_ttl,
            authenticate_token=tokens.authenticate_token,
            kubelet=KubeletConnection(
                address_types=options.kubelet_preferred_address_types or ADDRESS_TYPES,
                default_port=options.kubelet_port,
                client_certificate=options.kubelet_client_certificate,
                client_key=options.kubelet_client_key,
                certificate_authority=options.kubelet_certificate_authority,
            ),
            slow_lane=self._slow_lane,
        )

    def _token_authenticator(self) -> UnionTokenAuthenticator:
        options = self.options
        audiences = options.api_audiences or options.service_account_issuer
        found: list[TokenAuthenticator] = []
        if options.token_auth_file:
            try:
                found.append(StaticTokens.load(options.token_auth_file, tuple(audiences)))
            except TokenFileError as error:
                raise OptionsError(f"--token-auth-file: {error}") from None

        def find(plural: str) -> Find:
            return lambda namespace, name: self.objects("", plural).known(namespace, name, _NAMED)

        bound = BoundObjects(
            service_account=find("serviceaccounts"), pod=find("pods"), secret=find("secrets"), node=find("nodes")
        )
        accounts = ServiceAccountTokens(lambda: self._keys, options.service_account_issuer, tuple(audiences), bound)
        found.append(CachedTokenAuthenticator(accounts))
        return UnionTokenAuthenticator(found)

    def _authorizer(self) -> Authorizer:
        kinds: dict[str, Callable[[], Authorizer]] = {
            "RBAC": lambda: self._rbac,
            "AlwaysAllow": AlwaysAllowAuthorizer,
            "AlwaysDeny": AlwaysDenyAuthorizer,
        }
        return UnionAuthorizer(
            (PrivilegedGroupAuthorizer(), *(kinds[mode]() for mode in self.options.authorization_mode))
        )

    def _config(self, authorizer: Authorizer, tokens: UnionTokenAuthenticator, files: CertificateFiles) -> Config:
        options = self.options
        audiences = options.api_audiences or options.service_account_issuer
        authenticators: list[Authenticator] = [
            ClientCertificateAuthenticator(), BearerTokenAuthenticator(tokens, tuple(audiences)),
        ]  # fmt: skip
        anonymous = AnonymousAuthenticator() if options.anonymous_auth else None
        return Config(
            authenticator=UnionAuthenticator(authenticators, anonymous),
            authorizer=authorizer,
            admission=admission_chain(
                Surroundings(
                    options=options,
                    authorizer=authorizer,
                    configuration=AdmissionConfiguration.load(options.admission_control_config_file),
                    objects=self.objects,
                    namespace_phase=self._namespace_phase,
                    resources_of=self._resources_of,
                )
            ),
            bind_address=options.bind_address,
            port=options.secure_port,
            tls=serving_tls(options, files),
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
            slow_lane=self._slow_lane,
        )

    def _namespace_phase(self, name: str) -> str | None:
        """The phase of a namespace, None if there is none; kept with its entry, as every write asks for it."""
        return self.objects("", "namespaces").known("", name, _PHASE)

    def _resources_of(self, gvk: GroupVersionKind) -> Sequence[ServedResource]:
        return () if self.server is None else self.server.catalogue.of_kind(gvk)

    def _authentication_info(self, files: CertificateFiles) -> dict[str, str]:
        client_ca = self.options.client_ca_file or str(files.ca)
        return {"client-ca-file": Path(client_ca).read_text(errors="replace")}

    def _add_checks(self, server: Server) -> None:
        server.add_checks(HealthCheck("etcd", lambda: None if self.storage is not None else "storage is closed"))
        stores = tuple(self.store(*key) for key in _READ_BY_THE_SERVER)
        server.add_checks(
            HealthCheck("etcd-readiness", lambda: None if self.storage is not None else "storage is closed"),
            HealthCheck(
                "informer-sync",
                lambda: next((f"{each.resource.plural} not synced" for each in stores if not each.cacher.ready), None),
            ),
            only_ready=True,
        )


def _kube_api(runtime: RuntimeConfig) -> tuple[Resource[Any, Services], ...]:
    """The resources of kube-apiserver in the versions that are served, and all stable ones."""
    if not runtime.beyond_default:
        return KUBE_API
    from steersman.controlplane import on_request  # which most servers never need

    return on_request.kube_api(runtime.serves)


_PHASE: Final[Reading[str]] = Reading(lambda namespace: namespace.status.phase, "status.phase")
_NAMED: Final[Reading[Named]] = Reading(lambda obj: obj, "metadata.name", "metadata.uid", "metadata.deletionTimestamp")


def _service_ranges(options: Options) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(trim_space(each)) for each in options.service_cluster_ip_range.split(",")]
    except ValueError as error:
        raise OptionsError(f"--service-cluster-ip-range: {error}") from None


def _ports(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (is_digits(first) and is_digits(last) and 0 < int(first) <= int(last) < 65536):
        raise OptionsError(f"--service-node-port-range: {text!r} is no range of ports such as 30000-32767")
    return int(first), int(last)


def _advertised(bind_address: str) -> str:
    """The address that others reach this host by."""
    if bind_address:
        address = unmapped(ip_address(bind_address))
        if not (address.is_unspecified or address.is_loopback):
            return bind_address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _reachable(bind_address: str) -> str:
    """The address that a client on this host uses."""
    if bind_address in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{bind_address}]" if ":" in bind_address else bind_address


def _is_storage_unavailable(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):  # of the hooks, which run side by side
        return all(map(_is_storage_unavailable, error.exceptions))
    return isinstance(error, StorageUnavailable)


def _make_folder(path: Path) -> None:
    try:
        make_private_folder(path)
    except OSError as error:
        why = f"the folder {path} cannot be made: {error.strerror}" if error.strerror else error
        raise OptionsError(f"--data-dir: {why}") from None


async def _listen(server: Server, options: Options) -> int:
    """Starts the listener; its port. Raises OptionsError, which says what to do, if it cannot be had."""
    address, port = options.bind_address, options.secure_port
    try:
        return (await server.start())[1]
    except OSError as error:
        match error.errno:
            case errno.EADDRINUSE:
                why = f"port {port} of {address} is in use by another process: end it, or take another --secure-port"
            case errno.EADDRNOTAVAIL:
                why = f"{address} is no address of this machine: --bind-address must be one, or 0.0.0.0 for all of them"
            case errno.EACCES | errno.EPERM:
                why = f"this user may not listen on port {port}: take a --secure-port of 1024 or more"
            case _:
                why = f"cannot listen on port {port} of {address}: {os.strerror(error.errno or 0)}"
        raise OptionsError(why) from None
