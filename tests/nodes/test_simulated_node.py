"""Addresses of nodes."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from steersman.net.client.transport import Address
from steersman.nodes.containers import Containers
from steersman.nodes.pod_ranges import PodRanges
from steersman.nodes.server.servers import NodeServers
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


def test_a_node_with_more_pods_than_addresses_gets_further_ranges() -> None:
    """Nodes that autoscalers make may hold a thousand pods, each of which has an address of its own."""
    one, other = node(0), node(1)
    servers = NodeServers([one, other], Containers())
    own = {one.address_of(("n", str(number)), "") for number in range(253)}
    assert {each.rpartition(".")[0] for each in own} == {"10.128.0"}
    more = {each.address_of(("more", str(number)), "") for number in range(300) for each in (one, other)}
    assert len(own | more) == 853
    assert all(servers.way(Address(each, 80, secure=False)) is not None for each in own | more)
    servers.remove(one)
    further = {each for each in more if each.startswith("100.64.")}
    served = {each for each in further if servers.way(Address(each, 80, secure=False)) is not None}
    assert len(served) == 47
    assert further > served


def test_a_pod_of_an_earlier_process_keeps_its_address_in_a_further_range() -> None:
    one, other = node(0), node(1)
    servers = NodeServers([one, other], Containers())
    for number in range(253):
        one.address_of(("n", str(number)), "")
    assert other.address_of(("n", "known"), "100.64.0.7") == "100.64.0.7"
    assert servers.way(Address("100.64.0.7", 80, secure=False)) is not None
    assert one.address_of(("n", "new"), "") == "100.64.1.2"
    servers.remove(other)
    assert servers.way(Address("100.64.0.7", 80, secure=False)) is None


def test_no_more_ranges_are_allocated_than_there_are() -> None:
    ranges: PodRanges[str] = PodRanges(IPv4Network("100.64.0.0/23"))
    first, second = ranges.add("a"), ranges.add("b")
    assert first is not None
    assert second == first + 1
    assert ranges.add("a") is None
    assert ranges.keep("b", "100.64.0.9") is None
    assert ranges.keep("b", "10.128.0.9") is None
    assert ranges.keep("b", "no address") is None
    ranges.release("a")
    assert ranges.owner(first) is None
    assert ranges.add("b") == first


def test_a_node_tells_what_it_can_do() -> None:
    status = node(0).status([])
    assert status.declared_features == sorted(status.declared_features)
    assert "InPlacePodLevelResourcesVerticalScaling" in status.declared_features
    assert status.features is not None
    assert status.features.supplemental_groups_policy
    handlers = {each.name: each.features for each in status.runtime_handlers}
    assert all(each is not None and each.user_namespaces for each in handlers.values())
