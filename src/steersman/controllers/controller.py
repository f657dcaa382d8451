"""Base class of controllers: keys in a work queue, and workers that reconcile the object of each key."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from steersman.client.client import Client
from steersman.client.errors import is_conflict
from steersman.client.events import Recorder
from steersman.client.informer import Informers
from steersman.client.transport import Unreachable
from steersman.controllers.aggregated_servers import ServerNotResponding
from steersman.controllers.authority import Authority
from steersman.controllers.monitors import Monitors
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import BASE_DELAY, MAX_DELAY, TryLater, WorkQueue

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


class ClusterCIDR(Struct, frozen=True):
    """A range of pod addresses, and the prefix length of each node's block."""

    network: IPv4Network | IPv6Network
    node_size: int


class AutoscalingSettings(Struct, frozen=True):
    """Values of the flags `--horizontal-pod-autoscaler-...`; times are in seconds."""

    sync_period: float = 15.0
    downscale_stabilization: float = 300.0
    tolerance: float = 0.1
    cpu_initialization_period: float = 300.0
    initial_readiness_delay: float = 30.0


class Settings(Struct, frozen=True):
    """Cluster-wide settings of the controllers (kube-controller-manager's flags)."""

    root_ca: str = ""
    """Certificates in PEM by which pods verify the API server; nothing is published if it is empty."""
    namespace_deletion_grace: float = 5.0
    """Seconds during which other API servers may not know yet that a namespace is being deleted."""
    sign_token: Callable[[dict[str, Any]], str] | None = None
    """Signs claims as a service account token. Without it secrets get no tokens."""
    legacy_token_clean_up_period: float = 365 * 86400.0
    """Seconds without use after which an automatically created token of a service account is removed."""
    signers: Mapping[str, Authority] = field(default_factory=dict)
    """Authorities by the name of their Kubernetes signer. Requests for other signers are ignored."""
    cluster_cidrs: Sequence[ClusterCIDR] = ()
    """Ranges of pod addresses from which nodes get blocks: none, one, or one of each IP family."""
    service_cidrs: Sequence[IPv4Network | IPv6Network] = ()
    """Ranges of service addresses, which are excluded from the nodes' blocks."""
    job_sync_period: float = 1.0
    """Seconds during which changes of a Job's pods are collected before the Job is reconciled."""
    autoscaling: AutoscalingSettings = AutoscalingSettings()


class ControllerDependencies(Struct, frozen=True):
    """Dependencies of a controller: its own client, the shared informers and monitors, its event recorder, settings."""

    client: Client
    informers: Informers
    monitors: Monitors
    recorder: Recorder
    settings: Settings


class Controller(ABC, Generic[K]):
    """A controller. `__init__` requests informers and adds the keys of changed objects to the queue; `sync` reconciles
    one key.

    A key whose `sync` raises is retried with a growing back-off. One key is never reconciled twice at the same time.
    """

    name: ClassVar[str]
    """Name in kube-controller-manager's flag `--controllers`."""
    account: ClassVar[str]
    """Service account in kube-system whose identity the controller uses; "" for the identity of the manager."""
    on_by_default: ClassVar[bool] = True
    """True if `*` in `--controllers` includes the controller."""
    component: ClassVar[str] = ""
    """Component in the source of the controller's events; `account` if it is empty."""
    workers: ClassVar[int] = 5
    """Number of keys that are reconciled at the same time."""
    retry_delay: ClassVar[float] = BASE_DELAY
    """Seconds before the first retry of a failed key. Each retry doubles the delay."""
    longest_retry_delay: ClassVar[float] = MAX_DELAY

    def __init__(self, dependencies: ControllerDependencies) -> None:
        self.client = dependencies.client
        self.informers = dependencies.informers
        self.recorder = dependencies.recorder
        self.queue: WorkQueue[K] = WorkQueue(base_delay=self.retry_delay, max_delay=self.longest_retry_delay)

    @classmethod
    def can_run(cls, settings: Settings) -> bool:
        """Return True if the settings include everything that the controller needs."""
        return True

    @abstractmethod
    async def sync(self, key: K) -> None:
        """Reconcile the object of a key. Raises StatusError, Unreachable, TryLater to be retried."""

    async def run(self) -> None:
        """Reconcile keys until cancelled. All informers must have synced."""
        await self.queue.run(self.sync, self._log_failure, name=self.name, workers=self.workers)

    def _log_failure(self, key: K, error: Exception) -> None:
        if not isinstance(error, (StatusError, Unreachable, TryLater, msgspec.DecodeError)):
            logger.error("%s: %s", self.name, key, exc_info=error)
            return
        expected = isinstance(error, TryLater | ServerNotResponding) or (
            isinstance(error, StatusError) and is_conflict(error)
        )
        logger.log(logging.DEBUG if expected else logging.WARNING, "%s: %s: %s", self.name, key, error)
