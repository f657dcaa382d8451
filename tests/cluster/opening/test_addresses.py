"""Address ranges of opened clusters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.cluster.opening.addresses import pod_range_for, service_range_of
from steersman.dumps.reading import DumpObject, read_objects
from tests.cluster.opening import real_objects as real


def objects(*plain: dict[str, Any]) -> list[DumpObject]:
    return read_objects(json.dumps({"kind": "List", "apiVersion": "v1", "items": plain}).encode(), "test")


def service(name: str, *ips: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIP": ips[0], "clusterIPs": list(ips)},
    }


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        ([service("kubernetes", "10.43.0.1")], "10.43.0.0/16"),
        ([service("kubernetes", "10.96.0.1"), service("a", "10.99.3.4"), service("b", "None")], "10.96.0.0/14"),
        ([service("kubernetes", "10.96.0.1", "fd00::1"), service("a", "fd00::1:7")], "10.96.0.0/16,fd00::/111"),
        ([service("a", "10.96.0.9")], ""),
    ],
)
def test_the_range_of_services_is_guessed_from_their_addresses(services: list[dict[str, Any]], expected: str) -> None:
    assert service_range_of(objects(*services)) == expected


def test_a_service_cidr_tells_the_range() -> None:
    cidr = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": ["10.0.0.0/20"]},
    }
    assert service_range_of(objects(service("kubernetes", "10.0.0.1"), cidr)) == "10.0.0.0/20"


def test_new_pods_get_addresses_that_no_pod_has() -> None:
    assert str(pod_range_for(objects(real.pod("a", ip="10.244.3.9")))) == "10.0.0.0/9"
    assert str(pod_range_for(objects(real.pod("a", ip="10.244.3.9"), real.pod("b", ip="10.1.2.3")))) == "100.64.0.0/10"
    simulated = real.node()
    simulated["spec"]["podCIDR"] = "10.128.4.0/24"
    assert str(pod_range_for(objects(simulated, real.pod("a", ip="10.128.4.9")))) == "10.128.0.0/9"


def test_pods_outside_of_the_ranges_of_their_nodes_keep_their_addresses() -> None:
    usual, other = real.node(), real.node("other", "10.0.0.8")
    other["spec"]["podCIDR"] = "10.244.4.0/24"
    pods = [real.pod("a", ip="10.244.3.9"), real.pod("b", ip="10.244.3.10")]
    assert str(pod_range_for(objects(usual, other, *pods))) == "10.128.0.0/9"
    of_other_node = real.pod("c", ip="10.244.4.9")  # of the range of another node, as Calico gives addresses
    assert str(pod_range_for(objects(usual, other, *pods, of_other_node))) == "100.64.0.0/10"
