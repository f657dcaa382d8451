"""What a node has, and what the pods on it take (framework.NodeInfo)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from steersman.api.core import v1 as core
from steersman.scheduler.demand.affinity_terms import NO_TERMS, PodTerms, terms_of
from steersman.scheduler.demand.images import normalized_image_name
from steersman.scheduler.demand.ports import HostPort, host_ports
from steersman.scheduler.demand.requests import Requests, Resources, allocatable, taken_by

NOTHING = Resources()


class PodInfo:
    """A pod that has a node, or is about to have it: what it takes there, and what it says of others."""

    __slots__ = ("claims", "pod", "ports", "requests", "terms")

    def __init__(self, pod: core.Pod, before: PodInfo | None = None, terms: PodTerms | None = None) -> None:
        """`before` is the same pod, which had its node before, `terms` are those of the pod if they are known."""
        self.pod = pod
        self.requests: Requests = taken_by(pod)
        self.terms: PodTerms
        self.ports: Sequence[HostPort]
        self.claims: frozenset[tuple[str, str]]
        if before is not None:  # what follows does not change once there is a node
            self.ports, self.terms, self.claims = before.ports, before.terms, before.claims
            return
        if terms is None:
            terms = terms_of(pod) if pod.spec.affinity is not None else NO_TERMS
        self.terms = terms
        self.ports = host_ports(pod.spec)
        namespace = pod.metadata.namespace
        self.claims = frozenset(
            (namespace, volume.persistent_volume_claim.claim_name)
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is not None
        )

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0


class NodeInfo:
    """A node and its pods. `version` grows with the node itself; without a node there is no `node`, only its pods."""

    __slots__ = (
        "allocatable",
        "claims",
        "ephemeral_storage",
        "images",
        "index",
        "memory",
        "milli_cpu",
        "name",
        "node",
        "non_zero_memory",
        "non_zero_milli_cpu",
        "pods",
        "ports",
        "scalars",
        "version",
    )

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.node: core.Node | None = None
        self.version = 0
        self.allocatable = NOTHING
        self.milli_cpu = self.memory = self.ephemeral_storage = 0
        self.non_zero_milli_cpu = self.non_zero_memory = 0
        self.scalars: dict[str, int] = {}
        self.pods: dict[str, PodInfo] = {}
        self.ports: Counter[HostPort] = Counter()
        self.claims: Counter[tuple[str, str]] = Counter()
        self.images: dict[str, int] = {}
        """Sizes by name."""

    def set_node(self, node: core.Node | None) -> None:
        """The node is another, or is gone."""
        self.node = node
        self.version += 1
        self.allocatable = NOTHING if node is None else allocatable(node)
        self.images = (
            {}
            if node is None
            else {
                normalized_image_name(name): each.size_bytes for each in node.status.images for name in each.names or ()
            }
        )

    def add(self, info: PodInfo) -> None:
        """A pod takes what it needs."""
        self.pods[info.pod.metadata.uid] = info
        self._take(info, 1)
        for port in info.ports:
            self.ports[port] += 1
        for claim in info.claims:
            self.claims[claim] += 1

    def remove(self, info: PodInfo) -> None:
        """A pod gives back what it took."""
        del self.pods[info.pod.metadata.uid]
        self._take(info, -1)
        for port in info.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        for claim in info.claims:
            self.claims[claim] -= 1
            if not self.claims[claim]:
                del self.claims[claim]

    def change_requests(self, info: PodInfo) -> bool:
        """A pod has changed, and may take more or less. Returns whether it does."""
        requests = taken_by(info.pod)
        if requests is info.requests:
            return False
        self._take(info, -1)
        info.requests = requests
        self._take(info, 1)
        return True

    def _take(self, info: PodInfo, sign: int) -> None:
        requests = info.requests
        asked = requests.asked
        self.milli_cpu += sign * asked.milli_cpu
        self.memory += sign * asked.memory
        self.ephemeral_storage += sign * asked.ephemeral_storage
        self.non_zero_milli_cpu += sign * requests.non_zero_milli_cpu
        self.non_zero_memory += sign * requests.non_zero_memory
        for name, amount in asked.scalars.items():
            self.scalars[name] = self.scalars.get(name, 0) + sign * amount

    def copy(self) -> NodeInfo:
        """One to try things out on; pods and the node are shared."""
        new = NodeInfo(self.name, self.index)
        new.node, new.version, new.allocatable, new.images = self.node, self.version, self.allocatable, self.images
        new.milli_cpu, new.memory, new.ephemeral_storage = self.milli_cpu, self.memory, self.ephemeral_storage
        new.non_zero_milli_cpu, new.non_zero_memory = self.non_zero_milli_cpu, self.non_zero_memory
        new.scalars, new.pods = dict(self.scalars), dict(self.pods)
        new.ports, new.claims = self.ports.copy(), self.claims.copy()
        return new
