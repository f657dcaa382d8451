"""Services: allocation of addresses and ports, values that an update keeps, and validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman.api.core.v1 import Service, ServicePort, ServiceSpec
from steersman.machinery.errors.status import StatusError
from steersman.registry.core.services.allocation import fill_node_ports
from steersman.registry.core.services.cluster_ips import static_band as address_band
from steersman.registry.core.services.endpoints import ENDPOINTS
from steersman.registry.core.services.node_ports import PortBitmap, PortOperation
from steersman.registry.core.services.node_ports import static_band as port_band
from steersman.registry.core.services.services import SERVICES
from steersman.registry.networking.ipaddresses import IP_ADDRESSES
from steersman.registry.networking.servicecidrs import SERVICE_CIDRS

NETWORKING = "networking.k8s.io"


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


@pytest.fixture
async def net(cluster: Callable[..., Any]) -> Any:
    return await cluster(SERVICES, ENDPOINTS, IP_ADDRESSES, SERVICE_CIDRS)


async def addresses(net: Any) -> set[str]:
    return {each.metadata.name for each in net.objects(NETWORKING, "ipaddresses").list()}


async def test_new_service_gets_an_address_that_is_an_object_of_its_own(net: Any) -> None:
    spec = (await net.create("services", service("a")))["spec"]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    address = await net.get("ipaddresses", spec["clusterIP"], group=NETWORKING)
    assert address["spec"]["parentRef"] == {"resource": "services", "namespace": "ns", "name": "a"}
    assert address["metadata"]["labels"]["ipaddress.kubernetes.io/managed-by"] == "ipallocator.k8s.io"


async def test_addresses_that_nobody_asked_for_leave_the_lower_band_alone(net: Any) -> None:
    for index in range(20):
        await net.create("services", service(f"s{index}"))
    assert all(int(address.rpartition(".")[2]) > 16 for address in await addresses(net))


async def test_a_full_range_gives_the_lower_band_and_then_an_error(cluster: Callable[..., Any]) -> None:
    net = await cluster(SERVICES, ENDPOINTS, IP_ADDRESSES, SERVICE_CIDRS, ranges=("10.0.0.0/29",))
    for index in range(6):
        await net.create("services", service(f"s{index}"))
    with pytest.raises(StatusError) as caught:
        await net.create("services", service("late"))
    assert caught.value.code == 500
    assert 'failed to allocate a serviceIP for Service "late": range is full' in caught.value.message


async def test_taken_and_foreign_addresses_are_refused(net: Any) -> None:
    await net.create("services", service("a", clusterIP="10.0.0.2"))
    assert await net.faults(net.create("services", service("b", clusterIP="10.0.0.2"))) == [
        'spec.clusterIPs: Invalid value: ["10.0.0.2"]: failed to allocate IP 10.0.0.2: provided IP is already allocated'
    ]
    for outside in ("10.0.0.0", "10.0.0.255", "192.168.7.7"):
        assert await net.faults(net.create("services", service("b", clusterIP=outside))) == [
            f'spec.clusterIPs: Invalid value: ["{outside}"]: failed to allocate IP {outside}: '
            "the provided network does not match the current range"
        ]


async def test_range_of_a_service_cidr_object_can_be_used(net: Any) -> None:
    await net.create(
        "servicecidrs", {"metadata": {"name": "more"}, "spec": {"cidrs": ["198.51.100.0/24"]}}, group=NETWORKING
    )
    spec = (await net.create("services", service("a", clusterIP="198.51.100.7")))["spec"]
    assert spec["clusterIP"] == "198.51.100.7"


async def test_invalid_service_gives_back_what_it_took(net: Any) -> None:
    bad = service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30001, "protocol": "ICMP"}])
    await net.faults(net.create("services", bad))
    assert await addresses(net) == set()
    await net.create("services", service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]))


async def test_delete_frees_address_ports_and_endpoints(net: Any) -> None:
    taken = service("a", clusterIP="10.0.0.9", type="NodePort", ports=[{"port": 80, "nodePort": 30005}])
    await net.create("services", taken)
    await net.create("endpoints", {"metadata": {"name": "a"}})
    await net.delete("services", "a")
    assert await addresses(net) == set()
    with pytest.raises(StatusError, match="not found"):
        await net.get("endpoints", "a")
    await net.create("services", taken)


async def test_dry_run_takes_nothing(net: Any) -> None:
    spec = (await net.create("services", service("a", type="NodePort"), dry_run=True))["spec"]
    assert (spec["clusterIP"], spec["ports"][0]["nodePort"]) == ("10.0.0.0", 32769)
    assert await addresses(net) == set()


async def test_headless_service_without_selector_may_have_both_families(net: Any) -> None:
    spec = (await net.create("services", service("a", clusterIP="None")))["spec"]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
    spec = (await net.create("services", service("b", clusterIP="None", selector={"a": "b"})))["spec"]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


async def test_dual_stack_cluster_gives_a_second_address_and_takes_it_back(cluster: Callable[..., Any]) -> None:
    net = await cluster(SERVICES, ENDPOINTS, IP_ADDRESSES, SERVICE_CIDRS, ranges=("10.0.0.0/24", "fd00::/112"))
    both = (await net.create("services", service("a", ipFamilyPolicy="PreferDualStack")))["spec"]
    assert both["ipFamilies"] == ["IPv4", "IPv6"]
    assert len(await addresses(net)) == 2
    one = (await net.change("services", "a", ipFamilyPolicy="SingleStack"))["spec"]
    assert (one["clusterIPs"], one["ipFamilies"]) == (both["clusterIPs"][:1], ["IPv4"])
    assert await addresses(net) == {both["clusterIP"]}
    again = (await net.change("services", "a", ipFamilyPolicy="RequireDualStack"))["spec"]
    assert len(again["clusterIPs"]) == 2


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"ipFamilyPolicy": "RequireDualStack"}, "this cluster is not configured for dual-stack services"),
        ({"ipFamilies": ["IPv6"]}, "not configured on this cluster"),
        ({"clusterIP": "fd00::1"}, "IPv6 is not configured on this cluster"),
        ({"ipFamilies": ["IPv4", "IPv6"]}, "when multiple IP families are specified"),
    ],
)
async def test_families_the_cluster_lacks_are_refused(net: Any, spec: dict[str, Any], fault: str) -> None:
    assert any(fault in each for each in await net.faults(net.create("services", service("a", **spec))))


async def test_update_without_allocated_values_keeps_them(net: Any) -> None:
    before = (await net.create("services", service("a", type="NodePort")))["spec"]
    after = (await net.update("services", service("a", type="NodePort", selector={"a": "b"})))["spec"]
    assert after["clusterIP"] == before["clusterIP"]
    assert after["ports"][0]["nodePort"] == before["ports"][0]["nodePort"]


async def test_address_may_not_change_once_set(net: Any) -> None:
    await net.create("services", service("a"))
    assert await net.faults(net.change("services", "a", clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"])) == [
        'spec.clusterIPs[0]: Invalid value: ["10.0.0.5"]: may not change once set'
    ]


async def test_change_to_external_name_and_back_frees_and_takes_an_address(net: Any) -> None:
    await net.create("services", service("a"))
    spec = (await net.change("services", "a", type="ExternalName", externalName="example.com"))["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"} & spec.keys()
    assert await addresses(net) == set()
    spec = (await net.change("services", "a", type="ClusterIP", externalName=None))["spec"]
    assert await addresses(net) == {spec["clusterIP"]}


async def test_change_to_cluster_ip_frees_the_ports_on_nodes(net: Any) -> None:
    await net.create("services", service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]))
    spec = (await net.change("services", "a", type="ClusterIP"))["spec"]
    assert "nodePort" not in spec["ports"][0]
    await net.create("services", service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]))


async def test_health_check_port_comes_and_goes_with_local_traffic(net: Any) -> None:
    spec = (await net.create("services", service("a", type="LoadBalancer", externalTrafficPolicy="Local")))["spec"]
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]
    spec = (await net.change("services", "a", externalTrafficPolicy="Cluster"))["spec"]
    assert "healthCheckNodePort" not in spec


async def test_same_port_of_two_protocols_shares_the_port_on_nodes(net: Any) -> None:
    ports = [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]
    made = (await net.create("services", service("dns", type="NodePort", ports=ports)))["spec"]["ports"]
    assert made[0]["nodePort"] == made[1]["nodePort"]


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"ports": []}, ["spec.ports: Required value"]),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            [
                "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
                "The range of valid ports is 30000-32767"
            ],
        ),
        (
            {"ports": [{"port": 80, "nodePort": 30003}]},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]},
            [
                'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,'
                '"TargetPort":0,"NodePort":0}'
            ],
        ),
        ({"type": "ExternalName"}, ["spec.externalName: Required value"]),
        (
            {"loadBalancerClass": "example.com/x"},
            ["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        ),
        (
            {"trafficDistribution": "Random"},
            [
                'spec.trafficDistribution: Unsupported value: "Random": supported values: '
                '"PreferClose", "PreferSameZone", "PreferSameNode"'
            ],
        ),
    ],
)
async def test_invalid_service_is_refused(net: Any, spec: dict[str, Any], faults: list[str]) -> None:
    assert await net.faults(net.create("services", service("a", **spec))) == faults


def test_bands_follow_the_size_of_the_range() -> None:
    from ipaddress import ip_network

    sizes = {"10.0.0.0/28": 0, "10.0.0.0/24": 16, "10.0.0.0/20": 256, "10.0.0.0/12": 256, "fd00::/64": 256}
    assert {text: address_band(ip_network(text)) for text in sizes} == sizes
    assert [port_band(size) for size in (16, 100, 2768, 10_000)] == [0, 16, 86, 128]


def test_ports_that_are_asked_for_are_found_in_one_pass() -> None:
    passes = 0

    class Ports(list[ServicePort]):
        def __iter__(self) -> Iterator[ServicePort]:
            nonlocal passes
            passes += 1
            return super().__iter__()

    ports = Ports(ServicePort(port=number + 1, protocol="TCP") for number in range(50))
    ports.append(ServicePort(port=1, protocol="UDP", node_port=30_007))
    made = Service(spec=ServiceSpec(type="NodePort"))
    made.spec.ports = ports
    operation = PortOperation(PortBitmap(range(30_000, 32_768)), dry_run=False)
    fill_node_ports(made, operation)
    assert (ports[0].node_port, ports[-1].node_port) == (30_007, 30_007)
    assert passes <= 2
