"""State of a node: its capacity, and what the pods on it use (framework.NodeInfo)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from steersman.api.core import v1 as core
from steersman.scheduler.demand.affinity_terms import NO_TERMS, PodTerms, terms_of
from steersman.scheduler.demand.images import normalized_image_name
from steersman.scheduler.demand.ports import HostPort, host_ports
from steersman.scheduler.demand.requests import Requests, Resources, allocatable, used_by

NOTHING = Resources()


class PodInfo:
    """Pod that has a node, or is about to get one, with its resources and affinity terms."""

    __slots__ = ("claims", "pod", "ports", "requests", "terms")

    def __init__(self, pod: core.Pod, before: PodInfo | None = None, terms: PodTerms | None = None) -> None:
        """Read a pod. `before` is an earlier state of the pod on its node; `terms` are its terms if known."""
        self.pod = pod
        self.requests: Requests = used_by(pod)
        self.terms: PodTerms
        self.ports: Sequence[HostPort]
        self.claims: frozenset[tuple[str, str]]
        if before is not None:  # ports, terms and claims do not change once the pod has a node
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
        """Return the priority of the pod, 0 if it has none."""
        return self.pod.spec.priority or 0


class NodeInfo:
    """Node and its pods. `version` grows with changes of the Node object; `node` is None if only pods are known."""

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
        """Sizes of images in bytes, by name."""

    def set_node(self, node: core.Node | None) -> None:
        """Replace the Node object; None if it is deleted."""
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
        """Add a pod and what it uses."""
        self.pods[info.pod.metadata.uid] = info
        self._count_requests(info, 1)
        for port in info.ports:
            self.ports[port] += 1
        for claim in info.claims:
            self.claims[claim] += 1

    def remove(self, info: PodInfo) -> None:
        """Remove a pod and what it uses."""
        del self.pods[info.pod.metadata.uid]
        self._count_requests(info, -1)
        for port in info.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        for claim in info.claims:
            self.claims[claim] -= 1
            if not self.claims[claim]:
                del self.claims[claim]

    def change_requests(self, info: PodInfo) -> bool:
        """Update the resources of a changed pod. Return True if they differ."""
        requests = used_by(info.pod)
        if requests is info.requests:
            return False
        self._count_requests(info, -1)
        info.requests = requests
        self._count_requests(info, 1)
        return True

    def _count_requests(self, info: PodInfo, sign: int) -> None:
        requests = info.requests
        requested = requests.total
        self.milli_cpu += sign * requested.milli_cpu
        self.memory += sign * requested.memory
        self.ephemeral_storage += sign * requested.ephemeral_storage
        self.non_zero_milli_cpu += sign * requests.non_zero_milli_cpu
        self.non_zero_memory += sign * requests.non_zero_memory
        for name, amount in requested.scalars.items():
            self.scalars[name] = self.scalars.get(name, 0) + sign * amount

    def copy(self) -> NodeInfo:
        """Return a copy for hypothetical changes; the pods and the Node object are shared."""
        new = NodeInfo(self.name, self.index)
        new.node, new.version, new.allocatable, new.images = self.node, self.version, self.allocatable, self.images
        new.milli_cpu, new.memory, new.ephemeral_storage = self.milli_cpu, self.memory, self.ephemeral_storage
        new.non_zero_milli_cpu, new.non_zero_memory = self.non_zero_milli_cpu, self.non_zero_memory
        new.scalars, new.pods = dict(self.scalars), dict(self.pods)
        new.ports, new.claims = self.ports.copy(), self.claims.copy()
        return new
