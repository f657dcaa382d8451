"""A simulated node: its Node object, its lease and the addresses of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from types import MappingProxyType
from typing import Final
from uuid import UUID

from steersman.api.coordination.v1 import Lease, LeaseSpec
from steersman.api.core.v1 import (
    ContainerImage,
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeFeatures,
    NodeRuntimeHandler,
    NodeRuntimeHandlerFeatures,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.client.informer import Key
from steersman.machinery.built_in.volumes import CONTROLLER_ATTACHES
from steersman.machinery.validation.formats import LABEL_VALUE_MAX_LENGTH
from steersman.machinery.values import times
from steersman.machinery.values.conditions import time_condition
from steersman.nodes.admission import Allocated
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.images import size_of
from steersman.nodes.pod_ranges import FURTHER, PodRanges, range_of
from steersman.nodes.rehearsal import Unknown

LEASES_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
"""Duration of a node's lease as kubelets set it; large sets of nodes use a longer one. A node that does not renew its
lease for so long counts as unreachable; it renews the lease four times as often."""

CAPACITY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cpu": "32",
        "memory": "256Gi",
        "ephemeral-storage": "1Ti",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "pods": "110",
    }
)
_FIRST_POD: Final = 2
"""First address for pods within a range."""
_OF_RANGE: Final = 253
"""Number of addresses for pods in a range."""
_MOST_IMAGES: Final = 1000
_MOST_REPORTED_IMAGES: Final = 50
GOOD: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
"""Conditions of a healthy node, in the order of a kubelet's: type, status, reason, message."""

_UNDER_PRESSURE: Final = {
    each[0]: each
    for each in (
        ("MemoryPressure", "True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("PIDPressure", "True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    )
}

_BOOTING: Final = (
    "Ready",
    "False",
    "KubeletNotReady",
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns "
    "error: cni plugin not initialized",
)
GROUP: Final = f"{PREFIX}group"
"""Label of a node with the name of its group."""
OS_IMAGE: Final = "Simulated"
"""Operating system that simulated nodes report."""

_DECLARED: Final = (
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)
"""Features that the API server and the scheduler ask for. ExtendWebSocketsToKubelet is absent: the API server
translates a client's WebSocket before it reaches this server."""


@dataclass(frozen=True)
class NodeTemplate:
    """Properties that simulated nodes have in common, besides names and addresses."""

    capacity: Mapping[str, str] = field(default_factory=lambda: CAPACITY)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    architecture: str = "amd64"
    kubelet_version: str = "v1.36.3"
    kubelet_port: int = 10250
    missing_images: tuple[str, ...] = ()
    """Patterns of names of images that no registry has (`images.is_missing`)."""
    unknown_programs: Unknown | None = None
    """Treatment of programs that are not simulated; None for the default of each container."""
    given_allocatable: Mapping[str, str] | None = None
    """Resources for pods; None for the whole capacity."""
    given_info: NodeSystemInfo | None = None
    """Facts about the machine in place of the usual ones; an empty text stands for the usual fact."""
    group: str = ""
    """Name of the nodes' group; "" for none, or for one that is not valid in a label."""
    owner: OwnerReference | None = None
    """Reference to the nodes' pool."""

    @property
    def allocatable(self) -> Mapping[str, str]:
        """Resources for pods."""
        return self.capacity if self.given_allocatable is None else self.given_allocatable


class SimulatedNode:
    """One simulated node. `number` determines its address and the range of its pods' addresses."""

    def __init__(
        self,
        name: str,
        number: int,
        template: NodeTemplate,
        hosts: IPv4Network,
        pods: IPv4Network,
        *,
        address: str = "",
    ) -> None:
        """`address` is used in place of the one that the number implies."""
        self.name: Final = name
        self.number: Final = number
        self.template = template
        self.address: Final = address or str(hosts[number + 2])
        size = 24
        if pods.num_addresses >> 8 <= number:
            raise ValueError(f"{pods} has no range for node {number}")
        self._network: Final = pods
        self.pod_cidr: Final = IPv4Network((int(pods.network_address) + (number << (32 - size)), size))
        self.uid = ""
        self.started_at: float = times.unix_now()
        self.unreachable = False
        """True if it sends no heartbeats, syncs no pods and answers no requests."""
        self.start_delay = 0.0
        """Seconds from a pod's start until its containers begin."""
        self.images: dict[str, None] = {}
        """Full names of images on the node; the most recently used ones come last."""
        self.ready_at = 0.0
        """Time in seconds since 1970 until which the node boots: it is not ready, and no container starts on it."""
        self.waits_for_boot = False
        """True if the end of its boot has not been handled yet."""
        self.pressure: tuple[str, ...] = ()
        """Types of its pressure conditions that are true."""
        self.allocated: Final = Allocated()
        self.further_ranges: PodRanges[SimulatedNode] | None = None
        """Allocator of ranges for more pods than the node's own range has addresses."""
        self._ranges = [int(self.pod_cidr.network_address) >> 8]
        """Numbers of the node's ranges of pod addresses; the own one comes first."""
        self.outside: dict[str, SimulatedNode] = {}
        """Nodes by the addresses of their pods that are not in their ranges; all nodes share it."""
        self._addresses: dict[Key, str] = {}
        self._taken: dict[str, Key] = {}
        self._next = 0

    def address_of(self, pod: Key, known: str) -> str:
        """Return the address of a pod, after reserving it: `known` if the pod has one of this node already, otherwise a
        free one.
        """
        found = self._addresses.get(pod)
        if found is None:
            is_outside = self._is_of_another_network(known)
            kept = (is_outside or self._is_own(known)) and self._taken.get(known, pod) == pod
            found = known if kept else self._free()
            self._addresses[pod] = found
            self._taken[found] = pod
            if kept and is_outside:
                self.outside[known] = self
        return found

    def _is_own(self, address: str) -> bool:
        """Return True if an address is in a range of the node, or in a further range that it can have."""
        number = range_of(address)
        if number is not None and number not in self._ranges and self.further_ranges is not None:
            self._add_range(self.further_ranges.keep(self, address))
        return number in self._ranges

    def _is_of_another_network(self, address: str) -> bool:
        """Return True if an address is in no network of simulated pods, such as that of an imported pod."""
        try:
            found = IPv4Address(address)
        except AddressValueError:
            return bool(address)
        return found not in self._network and found not in FURTHER

    def release(self, pod: Key) -> None:
        """Free the address of a pod."""
        found = self._addresses.pop(pod, None)
        if found is not None and self._taken.get(found) == pod:
            del self._taken[found]
            if self.outside.get(found) is self:
                del self.outside[found]

    def has_pulled(self, names: Iterable[str]) -> None:
        """Add images to the node, and evict the least recently used ones beyond the bound."""
        for name in names:
            self.images.pop(name, None)
            self.images[name] = None
        while len(self.images) > _MOST_IMAGES:
            del self.images[next(iter(self.images))]

    def _reported_images(self) -> list[ContainerImage]:
        """Return the largest images, for the status."""
        sizes = sorted(((size_of(name), name) for name in self.images), reverse=True)
        return [ContainerImage(names=[name], size_bytes=size) for size, name in sizes[:_MOST_REPORTED_IMAGES]]

    def pod_at(self, address: str) -> Key | None:
        """Return the pod that has an address, or None."""
        return self._taken.get(address)

    def _free(self) -> str:
        """Return the next free address, of a further range if none is free. If there is no further range, return an
        address that is in use.
        """
        if len(self._taken) < len(self._ranges) * _OF_RANGE:
            for _ in range(len(self._ranges) * _OF_RANGE):
                candidate = self._candidate()
                if candidate not in self._taken:
                    return candidate
        if self.further_ranges is not None:
            self._add_range(self.further_ranges.add(self))
        return self._candidate()

    def _candidate(self) -> str:
        """Return the address whose turn it is."""
        index = self._next % (len(self._ranges) * _OF_RANGE)
        self._next = index + 1
        return str(IPv4Address((self._ranges[index // _OF_RANGE] << 8) + _FIRST_POD + index % _OF_RANGE))

    def _add_range(self, number: int | None) -> None:
        if number is not None:
            self._next = len(self._ranges) * _OF_RANGE
            self._ranges.append(number)

    @cached_property
    def _machine_id(self) -> str:
        return sha256(self.name.encode()).hexdigest()[:32]

    @property
    def boots(self) -> bool:
        """True if the node is not ready yet, as it boots."""
        return self.ready_at > times.unix_now()

    @property
    def pods(self) -> tuple[Key, ...]:
        """Pods that have addresses of the node."""
        return tuple(self._addresses)

    def usual_labels(self) -> dict[str, str]:
        """Return the labels that a kubelet sets on its node, and its group.

        The hostname is missing if a label cannot hold the name.
        """
        architecture = self.template.architecture
        hostname = {"kubernetes.io/hostname": self.name} if len(self.name) <= LABEL_VALUE_MAX_LENGTH else {}
        return {
            "beta.kubernetes.io/arch": architecture,
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": architecture,
            **hostname,
            "kubernetes.io/os": "linux",
            **({GROUP: self.template.group} if self.template.group else {}),
        }

    def node(self) -> Node:
        """Return the Node object that the kubelet registers."""
        template = self.template
        labels = {**self.usual_labels(), **template.labels}
        cidr = str(self.pod_cidr)
        return Node(
            metadata=ObjectMeta(
                name=self.name,
                labels=labels,
                annotations={CONTROLLER_ATTACHES: "true", **template.annotations},
                owner_references=[] if template.owner is None else [template.owner],
            ),
            spec=NodeSpec(pod_cidr=cidr, pod_cidrs=[cidr], provider_id="", taints=list(template.taints)),
            status=self.status([]),
        )

    def status(self, before: list[NodeCondition]) -> NodeStatus:
        """Return the status that the kubelet reports.

        `before` are the current conditions, whose transition times stay.
        """
        template, now, machine = self.template, times.now(), str(UUID(self._machine_id))
        conditions = [
            time_condition(
                NodeCondition(
                    type=type_,
                    status=status,
                    last_heartbeat_time=now,
                    reason=reason,
                    message=message,
                    last_transition_time=now,
                ),
                before,
            )
            for type_, status, reason, message in map(self._condition, GOOD)
        ]
        return NodeStatus(
            capacity=dict(template.capacity),
            allocatable=dict(template.allocatable),
            conditions=conditions,
            images=self._reported_images(),
            declared_features=list(_DECLARED),
            features=NodeFeatures(supplemental_groups_policy=True),
            runtime_handlers=[
                NodeRuntimeHandler(
                    name=name,
                    features=NodeRuntimeHandlerFeatures(recursive_read_only_mounts=True, user_namespaces=True),
                )
                for name in ("", "runc")
            ],
            addresses=[
                NodeAddress(type="InternalIP", address=self.address),
                NodeAddress(type="Hostname", address=self.name),
            ],
            daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=template.kubelet_port)),
            node_info=self._info(machine),
        )

    def _info(self, machine: str) -> NodeSystemInfo:
        template, given = self.template, self.template.given_info or NodeSystemInfo()
        return NodeSystemInfo(
            machine_id=given.machine_id or self._machine_id,
            system_uuid=given.system_uuid or machine,
            boot_id=given.boot_id or machine,
            kernel_version=given.kernel_version or "6.12.0",
            os_image=given.os_image or OS_IMAGE,
            container_runtime_version=given.container_runtime_version or "containerd://2.1.0",
            kubelet_version=template.kubelet_version,
            kube_proxy_version=given.kube_proxy_version,
            operating_system=given.operating_system or "linux",
            architecture=template.architecture,
        )

    def _condition(self, good: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
        """Return the present form of one of the conditions of a healthy node."""
        if good[0] in self.pressure:
            return _UNDER_PRESSURE[good[0]]
        return _BOOTING if good[0] == "Ready" and self.boots else good

    def lease(self, seconds: int) -> Lease:
        """Return the node's Lease, with a duration of `seconds`."""
        owner = OwnerReference(api_version="v1", kind="Node", name=self.name, uid=self.uid)
        return Lease(
            metadata=ObjectMeta(name=self.name, namespace=LEASES_NAMESPACE, owner_references=[owner]),
            spec=LeaseSpec(holder_identity=self.name, lease_duration_seconds=seconds, renew_time=times.now_micro()),
        )
