"""Tests of the limits of a kubelet's writes to its Node."""

from __future__ import annotations

import pytest

from steersman.admission_plugins.node_restriction.nodes import forbidden_in_new_node, forbidden_in_node
from steersman.api.core.v1 import Node
from steersman.machinery.codec.serializer import from_plain


def a_node(labels: dict[str, str] | None = None, **spec: object) -> Node:
    return from_plain(Node, {"metadata": {"name": "n", "labels": labels or {}}, "spec": spec})


@pytest.mark.parametrize(
    ("label", "is_own"),
    [
        ("plain", True),
        ("acme.com/x", True),
        ("kubernetes.io/hostname", True),
        ("kubernetes.io/other", False),
        ("k8s.io/other", False),
        ("deep.k8s.io/other", False),
        ("notk8s.io/other", True),
        ("kubelet.kubernetes.io/x", True),
        ("mine.kubelet.kubernetes.io/x", True),
        ("node.kubernetes.io/instance-type", True),
        ("node-role.kubernetes.io/worker", False),
        ("node-restriction.kubernetes.io/x", False),
        ("acme.node-restriction.kubernetes.io/x", False),
        ("topology.kubernetes.io/zone", True),
        ("topology.kubernetes.io/other", False),
        ("beta.kubernetes.io/arch", True),
    ],
)
def test_labels_of_its_own(label: str, is_own: bool) -> None:
    with_it, without = a_node({label: "a"}), a_node()
    assert (forbidden_in_new_node("n", with_it) == "") is is_own
    for old, new in ((without, with_it), (with_it, without), (with_it, a_node({label: "b"}))):
        assert (forbidden_in_node("n", old, new) == "") is is_own
    assert forbidden_in_node("n", with_it, with_it) == ""


def test_labels_are_told_in_order() -> None:
    node = a_node({"node-restriction.kubernetes.io/a": "", "k8s.io/b": "", "mine": ""})
    message = 'node "n" is not allowed to set the following labels: k8s.io/b, node-restriction.kubernetes.io/a'
    assert forbidden_in_new_node("n", node) == message


def test_taints_and_owners_are_not_its_own() -> None:
    taint = a_node(taints=[{"key": "k", "effect": "NoSchedule"}])
    assert forbidden_in_new_node("n", taint) == ""
    assert forbidden_in_node("n", taint, a_node()) == 'node "n" is not allowed to modify taints'
    owned = a_node()
    owned.metadata.owner_references = from_plain(
        Node, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}}
    ).metadata.owner_references
    assert forbidden_in_node("n", a_node(), owned) == 'node "n" is not allowed to modify ownerReferences'


def test_where_its_configuration_is_is_not_its_own() -> None:
    source = a_node(configSource={"configMap": {"namespace": "x", "name": "y", "kubeletConfigKey": "z"}})
    assert "non-nil configSource" in forbidden_in_new_node("n", source)
    assert "configSource" in forbidden_in_node("n", a_node(), source)
    assert forbidden_in_node("n", source, a_node()) == ""
