"""The etcd clusters that flags name: a main one, and others for some resources."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from steersman.controlplane.flag_readers import parse_override
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.periodic import periodic
from steersman.controlplane.storage_health import not_ready, storage_fault
from steersman.machinery.go.os_errors import reason
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.metrics import Gauge, Histogram, Registry
from steersman.net.client.tls import HTTP2, client_context
from steersman.server.health import HealthCheck
from steersman.server.server import Server
from steersman.storage.cache.consistency import KeysAt
from steersman.storage.etcd import EtcdStorage
from steersman.storage.etcd.sole_server import SoleServer
from steersman.storage.interface import Answered, Storage
from steersman.storage.measured import CallMetrics, MeasuredStorage

_KEYS_OF_A_LEASE: Final = (10.0, 50.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0)


class EtcdClusters:
    """The etcd clusters of a server. Their storages are opened one by one, and closed by the caller of `open`."""

    def __init__(self, options: Options, registry: Registry) -> None:
        self._options = options
        self._calls = CallMetrics(registry)
        self._leases = Histogram(
            "etcd_lease_object_counts", "[ALPHA] Number of objects attached to a single etcd lease.", _KEYS_OF_A_LEASE
        )
        self._sizes = Gauge(
            "apiserver_storage_size_bytes",
            "[STABLE] Size of the storage database file physically allocated in bytes.",
            ("storage_cluster_id",),
        )
        registry.add(self._leases, self._sizes)
        self._storages: list[EtcdStorage] = []
        """All opened clusters, the main one first."""
        self._of_resources: dict[GroupResource, EtcdStorage] = {}

    async def open(self) -> EtcdStorage:
        """Open the main cluster. Raises OptionsError, StorageUnavailable and StorageFormatError."""
        options = self._options
        if options.storage == "memory":
            raise OptionsError("--storage=memory and --etcd-servers contradict each other")
        if bool(options.etcd_certfile) != bool(options.etcd_keyfile):
            raise OptionsError("--etcd-certfile and --etcd-keyfile must be specified together")
        if not options.etcd_prefix.strip("/"):
            raise OptionsError("--etcd-prefix: must not be empty")
        return await self._opened("--etcd-servers", options.etcd_servers)

    async def open_overrides(self, running: AsyncExitStack) -> None:
        """Open the clusters for some resources, each set of members once; `running` closes them. Raises as `open`."""
        opened: dict[tuple[str, ...], EtcdStorage] = {}
        for text in self._options.etcd_servers_overrides:
            try:
                group, plural, servers = parse_override(text)
            except ValueError as error:
                raise OptionsError(f"--etcd-servers-overrides: {error}") from None
            members = tuple(sorted(servers))
            if members not in opened:
                opened[members] = storage = await self._opened("--etcd-servers-overrides", servers)
                running.push_async_callback(storage.close)
            self._of_resources[GroupResource(group, plural)] = opened[members]

    async def _opened(self, flag: str, servers: Sequence[str]) -> EtcdStorage:
        options = self._options
        try:
            storage = await EtcdStorage.open(
                servers,
                tls=tls_context(options, servers),
                root=f"/{options.etcd_prefix.strip('/')}",
                compaction_interval=options.etcd_compaction_interval,
                lease_reuse_seconds=options.lease_reuse_duration_seconds,
                on_lease=self._leases.observe,
            )
        except ValueError as error:
            raise OptionsError(f"{flag}: {error}") from None
        self._storages.append(storage)
        return storage

    def storage_of(self, resource: GroupResource) -> Storage:
        """Return the storage of a resource, with metrics of its calls."""
        return MeasuredStorage(self._of(resource), resource, self._calls)

    def ask(self, answered: Answered) -> None:
        """Ask the main cluster for its newest revision. Raises StorageUnavailable."""
        self._storages[0].ask(answered)

    def sole_server(self) -> SoleServer:
        """Return the claim of this server to be the only one on the main cluster."""
        return self._storages[0].sole_server()

    def has_own_storage(self, resource: GroupResource) -> bool:
        """Return True for a resource that is not stored in the main cluster."""
        return resource in self._of_resources

    @property
    def storages(self) -> Sequence[Storage]:
        """All clusters, the main one first."""
        return self._storages

    def keys_of(self, resource: GroupResource) -> KeysAt:
        """Return a reader of the keys and revisions of a resource in etcd."""
        return self._of(resource).revisions

    def _of(self, resource: GroupResource) -> EtcdStorage:
        return self._of_resources.get(resource, self._storages[0])

    def install(self, server: Server, running: AsyncExitStack) -> None:
        """Add the health checks of the additional clusters, and start measuring the sizes of all clusters."""
        options = self._options
        for number, storage in enumerate(self._storages[1:]):
            server.add_checks(_check(f"etcd-override-{number}", storage, options.etcd_healthcheck_timeout))
            ready = _readiness(f"etcd-override-readiness-{number}", storage, options.etcd_readycheck_timeout)
            server.add_checks(ready, only_ready=True)
        if options.etcd_db_metric_poll_interval:
            measuring = periodic("storage size", self._measure, options.etcd_db_metric_poll_interval)
            running.push_async_callback(measuring.stop)
            measuring.start()
            measuring.wake()

    async def _measure(self) -> None:
        for number, storage in enumerate(self._storages):
            self._sizes.set(await storage.size(), (f"etcd-{number}",))


def _check(name: str, storage: Storage, seconds: float) -> HealthCheck:
    return HealthCheck(name, lambda: storage_fault(storage, seconds))


def _readiness(name: str, storage: Storage, seconds: float) -> HealthCheck:
    return HealthCheck(name, lambda: not_ready(storage, seconds))


def tls_context(options: Options, servers: Sequence[str]) -> ssl.SSLContext | None:
    """Return the TLS context for members with https URLs, None without such members. Raises OptionsError."""
    if not any(each.startswith(("https:", "unixs:")) for each in servers):
        return None
    context = client_context(HTTP2)
    context.set_alpn_protocols(["h2"])  # in every case: the environment variable for HTTP must not disable HTTP/2 here
    try:
        if options.etcd_cafile:
            context.load_verify_locations(cafile=options.etcd_cafile)
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    except OSError as error:
        raise OptionsError(f"--etcd-cafile: {_why(error)}") from None
    try:
        if options.etcd_certfile:
            # Without a password argument OpenSSL would prompt on the terminal for the password of an encrypted key.
            context.load_cert_chain(options.etcd_certfile, options.etcd_keyfile, lambda: "")
    except (OSError, ValueError) as error:
        raise OptionsError(f"--etcd-certfile: {_why(error)}") from None
    return context


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return reason(error)
    return "no certificates, or a key that does not belong to the certificate"
