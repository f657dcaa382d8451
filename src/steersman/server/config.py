"""Configuration of a generic API server: plain data, completed once and frozen from then on."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import asdict

from steersman.admission.interface import Chain
from steersman.authentication.interface import Authenticator
from steersman.authorization.interface import Authorizer
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.endpoints.filters.observation import Observe
from steersman.endpoints.metrics import RequestMetrics
from steersman.machinery.large_work.large_requests import LargeRequests
from steersman.machinery.metrics import Registry
from steersman.net.limits import Limits
from steersman.net.tls import ServerTLS
from steersman.work.threads import WorkerThreads

if TYPE_CHECKING:  # spares the import: a server behind no proxy does not need it
    from steersman.audit.trail import Auditor
    from steersman.authentication.request_header import HeaderRemover
    from steersman.endpoints.filters.priority_and_fairness import StoredObjects
    from steersman.faults.fault_set import FaultSet
    from steersman.flowcontrol.fairness import Fairness

_MIB = 1024 * 1024


def new_executor() -> Executor:
    """Return the thread pool for long computations that never wait: compression."""
    return ThreadPoolExecutor(2, thread_name_prefix="steersman")


class Config(Struct, kw_only=True):
    """Configuration of a server; times are in seconds. Fields that are None are filled by `complete()`.

    `external_host` is the name or address by which others reach the server, by default `bind_address`. If `fairness` is
    given, it limits concurrent requests, and `stored_objects` returns the sizes of lists; otherwise
    `max_requests_in_flight` and `max_mutating_requests_in_flight` are the limits. `records_origins` is True if storage
    keeps the origins of writes. `faults` happen to requests, if there are any.
    """

    authenticator: Authenticator
    authorizer: Authorizer
    proxy_headers: HeaderRemover | None = None
    auditor: Auditor | None = None
    admission: Chain = field(default_factory=lambda: Chain(()))
    bind_address: str = "0.0.0.0"
    port: int = 6443
    shares_port: bool = False
    external_host: str = ""
    tls: ServerTLS | None = None
    limits: Limits = field(default_factory=Limits)
    request_timeout: float = 60.0
    min_request_timeout: int = 1800
    max_requests_in_flight: int = 400
    max_mutating_requests_in_flight: int = 200
    fairness: Fairness | None = None
    stored_objects: StoredObjects | None = None
    max_body_bytes: int = 3 * _MIB
    goaway_chance: float = 0.0
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security: str = ""
    shutdown_send_retry_after: bool = False
    shutdown_delay: float = 0.0
    shutdown_timeout: float = 60.0
    log_requests: bool = False
    observe: Observe | None = None
    faults: FaultSet | None = None
    records_origins: bool = False
    profiling: bool = True
    mapper: RESTMapper | None = None
    registry: Registry | None = None
    executor: Executor | None = None
    threads: WorkerThreads | None = None

    def complete(self) -> CompletedConfig:
        """Return the completed configuration."""
        values = asdict(self)
        values["external_host"] = self.external_host or self.bind_address
        values["mapper"] = self.mapper or RESTMapper()
        values["registry"] = registry = self.registry or Registry()
        values["executor"] = self.executor or new_executor()
        values["large_requests"] = LargeRequests()
        values["threads"] = self.threads or WorkerThreads()
        return CompletedConfig(metrics=RequestMetrics(registry), **values)


class CompletedConfig(Struct, frozen=True, kw_only=True):
    """A complete configuration; see Config."""

    authenticator: Authenticator
    authorizer: Authorizer
    proxy_headers: HeaderRemover | None
    auditor: Auditor | None
    admission: Chain
    bind_address: str
    port: int
    shares_port: bool
    external_host: str
    tls: ServerTLS | None
    limits: Limits
    request_timeout: float
    min_request_timeout: int
    max_requests_in_flight: int
    max_mutating_requests_in_flight: int
    fairness: Fairness | None
    stored_objects: StoredObjects | None
    max_body_bytes: int
    goaway_chance: float
    cors_allowed_origins: tuple[str, ...]
    strict_transport_security: str
    shutdown_send_retry_after: bool
    shutdown_delay: float
    shutdown_timeout: float
    log_requests: bool
    observe: Observe | None
    faults: FaultSet | None
    records_origins: bool
    profiling: bool
    mapper: RESTMapper
    registry: Registry
    executor: Executor
    threads: WorkerThreads
    large_requests: LargeRequests
    metrics: RequestMetrics
