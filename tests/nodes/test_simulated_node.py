"""Addresses of nodes."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from steersman.nodes.simulated_node import NodeTemplate, SimulatedNode

HOSTS, PODS = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/15")


def node(number: int) -> SimulatedNode:
    return SimulatedNode(f"node-{number}", number, NodeTemplate(), HOSTS, PODS)


def test_nodes_have_ranges_of_their_own_while_there_are_any() -> None:
    assert (node(0).address, str(node(0).pod_cidr)) == ("172.16.0.2", "10.128.0.0/24")
    assert (node(511).address, str(node(511).pod_cidr)) == ("172.16.2.1", "10.129.255.0/24")
    with pytest.raises(ValueError, match="no range for node 512"):
        node(512)


def test_an_address_is_a_pods_own_until_it_is_released() -> None:
    one = node(0)
    known = one.address_of(("n", "known"), "10.128.0.2")
    first = one.address_of(("n", "first"), "")
    assert (known, first) == ("10.128.0.2", "10.128.0.3")
    assert one.address_of(("n", "first"), "") == first
    one.release(("n", "first"))
    assert len({one.address_of(("n", str(number)), "") for number in range(252)}) == 252


def test_a_node_tells_what_it_can_do() -> None:
    status = node(0).status([])
    assert status.declared_features == sorted(status.declared_features)
    assert "InPlacePodLevelResourcesVerticalScaling" in status.declared_features
    assert status.features is not None
    assert status.features.supplemental_groups_policy
    handlers = {each.name: each.features for each in status.runtime_handlers}
    assert all(each is not None and each.user_namespaces for each in handlers.values())
