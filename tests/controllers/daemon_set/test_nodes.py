"""Tests of the matching of DaemonSets and nodes, and of pods for a node."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.apps.v1 import DaemonSet, DaemonSetSpec
from steersman.api.core.v1 import Node, NodeSpec, Pod, Taint, Toleration
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.daemon_set.nodes import (
    NodeMatcher,
    bound_to,
    generation_of,
    is_updated,
    target_node,
    template_for,
    with_tolerations,
)
from tests.controllers.kubelet import template


def daemon_set(**spec: Any) -> DaemonSet:
    metadata = ObjectMeta(name="ds", annotations={"deprecated.daemonset.template.generation": "3"})
    return DaemonSet(metadata=metadata, spec=DaemonSetSpec(template=template(**spec)))


def node(*taints: tuple[str, str], name: str = "n", **labels: str) -> Node:
    found = [Taint(key=key, effect=effect) for key, effect in taints]
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=found))


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (node(), (True, True)),
        (
            node(("node.kubernetes.io/unschedulable", "NoSchedule"), ("node.kubernetes.io/not-ready", "NoExecute")),
            (True, True),
        ),
        (node(("node.kubernetes.io/not-ready", "NoSchedule")), (False, True)),
        (node(("own", "NoSchedule")), (False, True)),
        (node(("own", "NoExecute")), (False, False)),
        (node(("own", "PreferNoSchedule")), (True, True)),
    ],
)
def test_taints_keep_pods_away_or_drive_them_out(given: Node, verdict: tuple[bool, bool]) -> None:
    assert NodeMatcher(daemon_set())(given) == verdict


def test_selector_and_name_must_be_the_nodes() -> None:
    assert NodeMatcher(daemon_set(node_selector={"a": "b"}))(node(a="b")) == (True, True)
    assert NodeMatcher(daemon_set(node_selector={"a": "b"}))(node()) == (False, False)
    assert NodeMatcher(daemon_set(node_name="other"))(node()) == (False, False)


def test_pods_tolerate_what_may_be_wrong_with_their_node() -> None:
    own = [
        Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute", toleration_seconds=5),
        Toleration(key="mine"),
    ]
    spec = template(tolerations=own, host_network=True).spec
    found = with_tolerations(spec)
    assert [each.key.removeprefix("node.kubernetes.io/") for each in found] == [
        "not-ready",
        "mine",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    ]
    assert found[0].toleration_seconds is None


def test_a_pod_is_for_one_node_and_of_one_revision() -> None:
    own = daemon_set()
    made = bound_to(template_for(own, "hash"), "n7")
    pod = Pod(metadata=made.metadata, spec=made.spec)
    assert target_node(pod) == "n7"
    assert target_node(Pod(spec=template(node_name="here").spec)) == "here"
    assert target_node(Pod(spec=template().spec)) is None
    assert made.metadata.labels == {
        "app": "a",
        "controller-revision-hash": "hash",
        "pod-template-generation": generation_of(own),
    }
    assert is_updated(pod, own, "hash")
    assert is_updated(pod, own, "other")  # the generation is the same
    pod.metadata.labels = {"controller-revision-hash": "other"}
    assert not is_updated(pod, own, "hash")
    assert own.spec.template.metadata.labels == {"app": "a"}
