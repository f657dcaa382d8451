"""What all controllers share: keys in a queue, workers who make the world as it should be for one."""

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
from steersman.controllers.authority import Authority
from steersman.controllers.monitors import Monitors
from steersman.controllers.other_servers import KeepsWaiting
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import BASE_DELAY, MAX_DELAY, TryLater, WorkQueue

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


class ClusterCIDR(Struct, frozen=True):
    """A range of pods' addresses, and how many bits long the network of each node's block is."""

    network: IPv4Network | IPv6Network
    node_size: int


class AutoscalingSettings(Struct, frozen=True):
    """Flags that begin with `--horizontal-pod-autoscaler-`; times are in seconds."""

    sync_period: float = 15.0
    downscale_stabilization: float = 300.0
    tolerance: float = 0.1
    cpu_initialization_period: float = 300.0
    initial_readiness_delay: float = 30.0


class Settings(Struct, frozen=True):
    """What controllers are told of the cluster (kube-controller-manager's flags)."""

    root_ca: str = ""
    """The certificates by which pods verify the API server, in PEM; without them nothing is published."""
    namespace_deletion_grace: float = 5.0
    """Seconds for which other API servers may not yet know that nothing is to be made in a namespace."""
    sign_token: Callable[[dict[str, Any]], str] | None = None
    """Signs claims as tokens of service accounts are signed; without it secrets are given none."""
    legacy_token_clean_up_period: float = 365 * 86400.0
    """Seconds since its last use after which a token that was made for an account is taken back."""
    signers: Mapping[str, Authority] = field(default_factory=dict)
    """The authorities of Kubernetes' own signers, by their names; what others sign is left to them."""
    cluster_cidrs: Sequence[ClusterCIDR] = ()
    """The ranges of pods' addresses of which nodes are given blocks: none, one, or one of each family."""
    service_cidrs: Sequence[IPv4Network | IPv6Network] = ()
    """The ranges of services' addresses, which no node is given."""
    job_sync_period: float = 1.0
    """Seconds for which changes of a Job's pods are gathered before it is looked at."""
    autoscaling: AutoscalingSettings = AutoscalingSettings()


class Surroundings(Struct, frozen=True):
    """What a controller is handed: its own client, what all of them follow together, and who tells of its events."""

    client: Client
    informers: Informers
    monitors: Monitors
    recorder: Recorder
    settings: Settings


class Controller(ABC, Generic[K]):
    """A controller: `__init__` asks for informers and says which changes put which keys into the queue; `sync` makes
    what a key stands for as it should be. One that raises is called again, later each time, but never twice at once for
    one key.
    """

    name: ClassVar[str]
    """As kube-controller-manager's `--controllers` has it."""
    account: ClassVar[str]
    """The service account of kube-system under which it works; "" for one that works as the manager does."""
    on_by_default: ClassVar[bool] = True
    """Whether `*` means it too."""
    component: ClassVar[str] = ""
    """As whom it tells of events, if not as its account."""
    workers: ClassVar[int] = 5
    """How many keys are worked on at the same time."""
    retry_delay: ClassVar[float] = BASE_DELAY
    """Seconds until a key that failed is tried again, doubled each time."""
    longest_retry_delay: ClassVar[float] = MAX_DELAY

    def __init__(self, given: Surroundings) -> None:
        self.client = given.client
        self.informers = given.informers
        self.recorder = given.recorder
        self.queue: WorkQueue[K] = WorkQueue(base_delay=self.retry_delay, max_delay=self.longest_retry_delay)

    @classmethod
    def can_run(cls, settings: Settings) -> bool:
        """Whether it has what it needs."""
        return True

    @abstractmethod
    async def sync(self, key: K) -> None:
        """Makes what a key stands for as it should be. Raises StatusError, Unreachable, TryLater to be called again."""

    async def run(self) -> None:
        """Works until it is cancelled; all informers have synced."""
        await self.queue.run(self.sync, self._failed, name=self.name, workers=self.workers)

    def _failed(self, key: K, error: Exception) -> None:
        if not isinstance(error, (StatusError, Unreachable, TryLater, msgspec.DecodeError)):
            logger.error("%s: %s", self.name, key, exc_info=error)
            return
        expected = isinstance(error, TryLater | KeepsWaiting) or (isinstance(error, StatusError) and is_conflict(error))
        logger.log(logging.DEBUG if expected else logging.WARNING, "%s: %s: %s", self.name, key, error)
