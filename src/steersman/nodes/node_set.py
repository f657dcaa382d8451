"""Simulated nodes of a cluster: the configured ones, and those that Node objects created through the API ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError
from typing import Final, NamedTuple

from steersman.api.core.v1 import Node
from steersman.machinery.number_allocator import NumberAllocator
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.simulated_node import CAPACITY, NodeTemplate, SimulatedNode

OF_KWOK: Final = "kwok.x-k8s.io/node"
"""Annotation by which kwok manages a node; its value is `fake`."""
SIMULATED: Final = f"{PREFIX}simulated"
_NEEDED: Final = ("cpu", "memory", "pods")
"""Resources without which no pod fits on a node."""
_POD_RANGE: Final = 24
"""Prefix length of a node's range of pod addresses."""


class Networks(NamedTuple):
    """Address ranges of nodes and of their pods."""

    hosts: IPv4Network
    pods: IPv4Network


class NodeSet(Mapping[str, SimulatedNode]):
    """Simulated nodes by name.

    Without `networks` no Node object is adopted. With `adopts_all` every Node object is, otherwise the annotated ones.
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
        self._adopted: set[str] = set()
        self._free = NumberAllocator(each.number for each in self._nodes.values())

    def __getitem__(self, name: str) -> SimulatedNode:
        return self._nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def is_adopted(self, name: str) -> bool:
        """Return True if a node was adopted, so that it is not a configured one."""
        return name in self._adopted

    def is_to_join(self, node: Node) -> bool:
        """Return True if a Node object should be simulated and is not one of the configured nodes."""
        if self._networks is None or (node.metadata.name in self._nodes and not self.is_adopted(node.metadata.name)):
            return False
        said = node.metadata.annotations
        return self._adopts_all or said.get(OF_KWOK) == "fake" or said.get(SIMULATED) == "true"

    def join(self, node: Node) -> SimulatedNode:
        """Adopt a Node object and return its simulated node. Raises ValueError if no address is left."""
        assert self._networks is not None
        number = self._number_of(node)
        found = SimulatedNode(node.metadata.name, number, template_of(node, self._usual), *self._networks)
        found.uid = node.metadata.uid
        self._free.allocate(number)
        self._nodes[found.name] = found
        self._adopted.add(found.name)
        return found

    def follow(self, node: Node) -> None:
        """Update the template of an adopted node from its object."""
        self._nodes[node.metadata.name].template = template_of(node, self._usual)

    def leave(self, name: str) -> SimulatedNode | None:
        """Remove an adopted node and return it; None if no adopted node has the name."""
        if name not in self._adopted:
            return None
        self._adopted.discard(name)
        found = self._nodes.pop(name)
        self._free.release(found.number)
        return found

    def _number_of(self, node: Node) -> int:
        """Return the number that the node's existing pod range implies, if it is free, otherwise the lowest
        free one.
        """
        known = self._number_in(node.spec.pod_cidr)
        return known if known is not None and known in self._free else self._free.lowest()

    def _number_in(self, cidr: str) -> int | None:
        assert self._networks is not None
        try:
            found = IPv4Network(cidr)
        except (AddressValueError, NetmaskValueError, ValueError):
            return None
        if found.prefixlen != _POD_RANGE or not found.subnet_of(self._networks.pods):
            return None
        return (int(found.network_address) - int(self._networks.pods.network_address)) >> (32 - _POD_RANGE)


def template_of(node: Node, usual: NodeTemplate) -> NodeTemplate:
    """Return the template of a Node object: `usual` with the values of the object."""
    status, labels = node.status, node.metadata.labels
    capacity = dict(status.capacity or status.allocatable)
    for name in _NEEDED:
        capacity.setdefault(name, status.allocatable.get(name, CAPACITY[name]))
    allocatable = {**{name: capacity[name] for name in _NEEDED}, **status.allocatable} if status.allocatable else None
    info = status.node_info
    return replace(
        usual,
        capacity=capacity if status.capacity or status.allocatable else CAPACITY,
        given_allocatable=allocatable,
        architecture=info.architecture or labels.get("kubernetes.io/arch", "") or usual.architecture,
        kubelet_version=info.kubelet_version or usual.kubelet_version,
    )
