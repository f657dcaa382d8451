"""Groups of simulated nodes: the nodes that a change of a group's size adds and removes."""

from __future__ import annotations

from steersman.api.core.v1 import Node, NodeSpec, NodeStatus, Pod, PodSpec, PodStatus, Taint
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.cluster.node_groups import further_nodes, groups_in, nodes_of, surplus
from steersman.nodes.node_set import SIMULATED
from steersman.nodes.simulated_node import GROUP


def node(name: str, group: str = "g", created: str = "2026-01-01T00:00:00Z") -> Node:
    labels = {GROUP: group} if group else {}
    return Node(metadata=ObjectMeta(name=name, labels=labels, creation_timestamp=created))


def pod(on: str, owner: str = "", phase: str = "Running") -> Pod:
    owners = [OwnerReference(api_version="apps/v1", kind=owner, name="o", uid="u", controller=True)] if owner else []
    return Pod(
        metadata=ObjectMeta(name="p", owner_references=owners),
        spec=PodSpec(node_name=on, containers=[]),
        status=PodStatus(phase=phase),
    )


def names(nodes: list[Node]) -> list[str]:
    return [each.metadata.name for each in nodes]


def test_further_nodes_have_the_lowest_free_names_and_are_simulated() -> None:
    there = [node("g-1"), node("g-3", group="")]
    made = further_nodes("g", there, None, 3)
    assert names(made) == ["g-0", "g-2", "g-4"]
    assert all(each.metadata.labels == {GROUP: "g"} for each in made)
    assert all(each.metadata.annotations == {SIMULATED: "true"} for each in made)


def test_further_nodes_are_like_the_template_without_its_failures() -> None:
    template = node("g-0")
    template.metadata.labels.update({"zone": "a", "kubernetes.io/hostname": "g-0"})
    template.metadata.annotations = {
        "rack": "7",
        "simulation.steersman.dev/unreachable": "true",
        "simulation.steersman.dev/memory-pressure": "true",
    }
    template.spec = NodeSpec(
        provider_id="sim:///g-0",
        unschedulable=True,
        pod_cidr="10.128.0.0/24",
        taints=[
            Taint(key="gpu", effect="NoSchedule"),
            Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule"),
        ],
    )
    template.status = NodeStatus(capacity={"cpu": "4", "a.b/gpu": "1"}, allocatable={"cpu": "3", "a.b/gpu": "1"})
    (made,) = further_nodes("g", [template], template, 1)
    assert made.metadata.labels == {GROUP: "g", "zone": "a"}
    assert made.metadata.annotations == {SIMULATED: "true", "rack": "7"}
    assert made.spec == NodeSpec(taints=[Taint(key="gpu", effect="NoSchedule")])
    assert (made.status.capacity, made.status.allocatable) == (template.status.capacity, template.status.allocatable)


def test_empty_nodes_go_first_then_those_that_were_made_last() -> None:
    nodes = [node("g-0"), node("g-9"), node("g-10"), node("g-1", created="2026-01-02T00:00:00Z"), node("g-2")]
    pods = [
        pod("g-0"),
        pod("g-9", "ReplicaSet"),
        pod("g-10", "DaemonSet"),
        pod("g-1", "Node"),
        pod("g-2", phase="Succeeded"),
    ]
    assert names(surplus(nodes, pods, 5)) == ["g-10", "g-2", "g-1", "g-9", "g-0"]
    assert names(surplus(nodes, pods, 1)) == ["g-10"]


def test_nodes_are_grouped_by_their_label() -> None:
    nodes = [node("b-0", "b"), node("a-1", "a"), node("a-0", "a"), node("other", "")]
    assert list(groups_in(nodes)) == ["a", "b"]
    assert names(nodes_of("a", nodes)) == ["a-0", "a-1"]
