"""Simulated nodes of a cluster: the configured ones, and those that Node objects created through the API ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError, ip_address
from typing import Final, NamedTuple

from steersman.api.core.v1 import Node
from steersman.machinery.number_allocator import NumberAllocator
from steersman.machinery.validation.formats import is_valid_label_value
from steersman.machinery.values import times
from steersman.nodes.behaviour import PREFIX, duration_of
from steersman.nodes.simulated_node import CAPACITY, OS_IMAGE, NodeTemplate, SimulatedNode

OF_KWOK: Final = "kwok.x-k8s.io/node"
"""Annotation by which kwok manages a node; its value is `fake`."""
SIMULATED: Final = f"{PREFIX}simulated"
UNREACHABLE: Final = f"{PREFIX}unreachable"
"""Annotation of a node that neither reports nor answers while its value is `true`."""
_NEEDED: Final = ("cpu", "memory", "pods")
"""Resources without which no pod fits on a node."""
_POD_RANGE: Final = 24
"""Prefix length of a node's range of pod addresses."""
_FIRST_HOST: Final = 2
"""Distance of the first node's address from the beginning of the nodes' range."""


class Networks(NamedTuple):
    """Address ranges of nodes and of their pods."""

    hosts: IPv4Network
    pods: IPv4Network

    @property
    def most_nodes(self) -> int:
        """Number of nodes for which there are addresses."""
        return self.pods.num_addresses >> (32 - _POD_RANGE)

    def number_of(self, node: Node) -> int | None:
        """Return the number that a Node's range of pod addresses implies, or else its address; None for neither."""
        number = self._number_in(node.spec.pod_cidr)
        if number is not None:
            return number
        internal = (each.address for each in node.status.addresses if each.type == "InternalIP")
        for text in internal:
            try:
                number = int(IPv4Address(text)) - int(self.hosts.network_address) - _FIRST_HOST
            except AddressValueError:
                continue
            if 0 <= number < self.most_nodes:
                return number
        return None

    def _number_in(self, cidr: str) -> int | None:
        try:
            found = IPv4Network(cidr)
        except (AddressValueError, NetmaskValueError, ValueError):
            return None
        if found.prefixlen != _POD_RANGE or not found.subnet_of(self.pods):
            return None
        return (int(found.network_address) - int(self.pods.network_address)) >> (32 - _POD_RANGE)


class NodeSet(Mapping[str, SimulatedNode]):
    """Simulated nodes by name.

    Without `networks` no Node object is adopted. With `adopts_all` every Node object is, otherwise the annotated ones and
    those of `nodes`.
    """

    def __init__(
        self,
        nodes: Iterable[SimulatedNode],
        networks: Networks | None = None,
        *,
        adopts_all: bool = False,
        usual: NodeTemplate | None = None,
    ) -> None:
        """`usual` is the template of adopted nodes, which their objects may override."""
        self._usual = usual or NodeTemplate()
        self._nodes = {each.name: each for each in nodes}
        self._networks = networks
        self._adopts_all = adopts_all
        self._without_asking = set(self._nodes)
        """Names of nodes that are simulated without an annotation."""
        self._own_addresses: set[str] = set()
        """Addresses that nodes brought along."""
        self._free = NumberAllocator(each.number for each in self._nodes.values())

    def __getitem__(self, name: str) -> SimulatedNode:
        return self._nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def resume(self, node: Node) -> None:
        """Simulate a node of an earlier process again, if this object is one."""
        if node.status.node_info.os_image == OS_IMAGE:
            self._without_asking.add(node.metadata.name)

    def is_to_join(self, node: Node) -> bool:
        """Return True if a Node object should be simulated."""
        if self._networks is None:
            return node.metadata.name in self._without_asking
        said = node.metadata.annotations
        return (
            self._adopts_all
            or said.get(OF_KWOK) == "fake"
            or said.get(SIMULATED) == "true"
            or node.metadata.name in self._without_asking
        )

    def join(self, node: Node) -> SimulatedNode:
        """Adopt a Node object and return its simulated node. Raises ValueError if no address is left."""
        if self._networks is None:
            raise ValueError("no addresses are configured")
        number = self._networks.number_of(node)
        if number is None or number not in self._free:
            number = self._free.lowest()
        address = self._own_address(node)
        found = SimulatedNode(
            node.metadata.name, number, template_of(node, self._usual), *self._networks, address=address
        )
        if address:
            self._own_addresses.add(address)
        found.uid = node.metadata.uid
        found.ready_at = ready_at_of(node)
        found.unreachable = node.metadata.annotations.get(UNREACHABLE) == "true"
        self._free.allocate(number)
        self._nodes[found.name] = found
        return found

    def follow(self, old: Node | None, new: Node) -> None:
        """Apply the capacity and annotations of a changed Node object to its simulated node.

        A resource that only the capacity has is left to the next report, which makes extended resources allocatable.
        """
        node = self._nodes[new.metadata.name]
        node.ready_at = ready_at_of(new)
        if old is not None and _describes_same_machine(old, new):
            return
        found = template_of(new, self._usual)
        known = {*node.template.capacity, *new.status.allocatable}
        node.template = replace(
            node.template,
            capacity={name: amount for name, amount in found.capacity.items() if name in known},
            given_allocatable=found.given_allocatable,
            architecture=found.architecture,
            kubelet_version=found.kubelet_version,
            given_info=found.given_info,
        )

    def leave(self, name: str) -> SimulatedNode | None:
        """Remove a node and return it; None if no node has the name."""
        found = self._nodes.pop(name, None)
        if found is not None:
            self._free.release(found.number)
            self._own_addresses.discard(found.address)
        return found

    def _own_address(self, node: Node) -> str:
        """Return the private address that a Node object had before, "" if it has none or another node has the same."""
        assert self._networks is not None
        for each in node.status.addresses:
            if each.type != "InternalIP" or each.address in self._own_addresses:
                continue
            try:
                found = ip_address(each.address)
            except ValueError:
                continue
            if found.is_private and not (found.is_loopback or found.is_link_local or found.is_unspecified):
                return "" if found in self._networks.hosts else each.address
        return ""


def template_of(node: Node, usual: NodeTemplate) -> NodeTemplate:
    """Return the template of a Node object: `usual` with the values of the object."""
    status, labels = node.status, node.metadata.labels
    capacity = dict(status.capacity or status.allocatable)
    for name in _NEEDED:
        capacity.setdefault(name, status.allocatable.get(name, CAPACITY[name]))
    allocatable = {**{name: capacity[name] for name in _NEEDED}, **status.allocatable} if status.allocatable else None
    info = status.node_info
    said = "" if is_valid_label_value(info.architecture) else info.architecture  # it becomes a label
    return replace(
        usual,
        capacity=capacity if status.capacity or status.allocatable else CAPACITY,
        given_allocatable=allocatable,
        architecture=said or labels.get("kubernetes.io/arch", "") or usual.architecture,
        kubelet_version=info.kubelet_version or usual.kubelet_version,
        given_info=info,
    )


def ready_at_of(node: Node) -> float:
    """Return the time in seconds since 1970 until which a Node boots, by its annotation; 0 without one."""
    said = node.metadata.annotations
    seconds = duration_of(said.get(f"{PREFIX}ready-after", ""))
    created = node.metadata.creation_timestamp
    return times.unix(created) + seconds if seconds > 0 and created else 0.0


def _describes_same_machine(one: Node, other: Node) -> bool:
    return (
        one.status.capacity == other.status.capacity
        and one.status.allocatable == other.status.allocatable
        and one.status.node_info == other.status.node_info
        and one.metadata.labels == other.metadata.labels
    )
