"""Groups of simulated nodes: the nodes that a change of a group's size adds and removes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final

from steersman.api.core.v1 import Node, NodeSpec, NodeStatus, NodeSystemInfo, Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.values import times
from steersman.net.ascii import is_digits
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.eviction import CONDITIONS
from steersman.nodes.node_set import SIMULATED, UNREACHABLE
from steersman.nodes.simulated_node import GROUP

_HOSTNAME: Final = "kubernetes.io/hostname"
_OF_CONTROLLERS: Final = "node.kubernetes.io/"
"""Prefix of taints that controllers set by a node's state."""
_OF_ONE_NODE: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        UNREACHABLE,
        *(PREFIX + name for name in CONDITIONS.values()),
    }
)
"""Annotations that further nodes of a group do not get."""


def nodes_of(group: str, nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes of a group; those that were made last come last."""
    return sorted((each for each in nodes if each.metadata.labels.get(GROUP) == group), key=_age)


def further_nodes(group: str, nodes: Iterable[Node], template: Node | None, number: int) -> list[Node]:
    """Return `number` new Node objects of a group, with the lowest free names of the form GROUP-N.

    They have the labels, annotations, taints and resources of `template`, or the default ones without it.
    """
    taken = {each.metadata.name for each in nodes}
    names = (name for name in (f"{group}-{each}" for each in count()) if name not in taken)
    return [_node(next(names), group, template) for _ in range(number)]


def surplus(nodes: Sequence[Node], pods: Iterable[Pod], number: int) -> list[Node]:
    """Return the `number` nodes of a group that go first: empty ones, then those that were made last.

    A node is empty if all pods on it have ended or belong to DaemonSets.
    """
    used = {each.spec.node_name for each in pods if not _may_go_with_its_node(each)}
    last_first = sorted(nodes, key=_age, reverse=True)
    return sorted(last_first, key=lambda each: each.metadata.name in used)[:number]


def groups_in(nodes: Iterable[Node]) -> Iterator[str]:
    """Return the names of all groups that have nodes, in order."""
    yield from sorted({each.metadata.labels.get(GROUP, "") for each in nodes} - {""})


def _node(name: str, group: str, template: Node | None) -> Node:
    metadata = ObjectMeta(name=name, labels={GROUP: group}, annotations={SIMULATED: "true"})
    if template is None:
        return Node(metadata=metadata)
    known, status = template.metadata, template.status
    metadata.labels.update({key: value for key, value in known.labels.items() if key != _HOSTNAME})
    metadata.annotations.update({key: value for key, value in known.annotations.items() if key not in _OF_ONE_NODE})
    taints = [each for each in template.spec.taints if not each.key.startswith(_OF_CONTROLLERS)]
    info = NodeSystemInfo(architecture=status.node_info.architecture, kubelet_version=status.node_info.kubelet_version)
    return Node(
        metadata=metadata,
        spec=NodeSpec(taints=taints),
        status=NodeStatus(capacity=dict(status.capacity), allocatable=dict(status.allocatable), node_info=info),
    )


def _age(node: Node) -> tuple[float, int, str]:
    """Return the sort key of a node by its creation and, as many are made within a second, its number."""
    name, created = node.metadata.name, node.metadata.creation_timestamp
    number = name.rpartition("-")[2][:9]
    return (times.unix(created) if created else 0.0, int(number) if is_digits(number) else 0, name)


def _may_go_with_its_node(pod: Pod) -> bool:
    of_daemon_set = any(each.controller and each.kind == "DaemonSet" for each in pod.metadata.owner_references)
    return of_daemon_set or is_terminal(pod)
