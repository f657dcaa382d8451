"""Tests of ports of pods, and of their order."""

from __future__ import annotations

from steersman.api.core.v1 import Container, ContainerPort, Service, ServicePort, ServiceSpec
from steersman.controllers.services.ports import Port, find_port, in_order, in_order_of_endpoints, ports_of_pod
from tests.controllers.services.objects import pod


def test_a_port_is_found_by_its_name_and_protocol() -> None:
    assert find_port(pod("a"), ServicePort(port=80, protocol="TCP", target_port="web")) == 8080
    assert find_port(pod("a"), ServicePort(port=80, protocol="UDP", target_port="web")) is None
    assert find_port(pod("a"), ServicePort(port=80, protocol="UDP", target_port=53)) == 53


def test_ports_of_sidecars_are_found_and_those_of_other_init_containers_are_not() -> None:
    service_port = ServicePort(port=80, protocol="TCP", target_port="side")
    ports = [ContainerPort(name="side", container_port=1, protocol="TCP")]
    assert find_port(pod("a", init_containers=[Container(name="i", ports=ports)]), service_port) is None
    sidecar = Container(name="i", ports=ports, restart_policy="Always")
    assert find_port(pod("a", init_containers=[sidecar]), service_port) == 1


def test_ports_that_a_pod_does_not_have_are_left_out() -> None:
    ports = [
        ServicePort(name="a", port=80, protocol="TCP", target_port="web"),
        ServicePort(name="b", port=81, protocol="TCP", target_port="none"),
    ]
    found = ports_of_pod(Service(spec=ServiceSpec(ports=ports, cluster_ip="10.0.0.1")), pod("a"))
    assert found == (Port("a", "TCP", 8080, None),)


def test_the_order_is_that_of_kube_controller_manager() -> None:
    """The expected order was recorded from kube-controller-manager by `tools/controllers`."""
    http, metrics, dns = (
        Port("http", "TCP", 8080, None),
        Port("metrics", "TCP", 9090, None),
        Port("dns", "UDP", 5353, None),
    )
    assert [each.name for each in in_order([http, metrics, dns])] == ORDER
    assert [each.name for each in in_order_of_endpoints([http, metrics, dns])] == ORDER_OF_ENDPOINTS


ORDER = ["http", "dns", "metrics"]
ORDER_OF_ENDPOINTS = ["http", "metrics", "dns"]
