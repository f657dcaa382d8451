"""Environment variables of Services in containers."""

from __future__ import annotations

from steersman.api.core.v1 import Service, ServicePort, ServiceSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.nodes.service_variables import service_variables


def service(name: str, address: str, *ports: ServicePort) -> Service:
    return Service(metadata=ObjectMeta(name=name), spec=ServiceSpec(cluster_ip=address, ports=list(ports)))


def test_a_service_has_an_address_and_ports() -> None:
    ports = ServicePort(name="http-api", port=80), ServicePort(name="dns", port=53, protocol="UDP")
    assert dict(service_variables(service("my-web", "10.0.0.7", *ports))) == {
        "MY_WEB_SERVICE_HOST": "10.0.0.7",
        "MY_WEB_SERVICE_PORT": "80",
        "MY_WEB_SERVICE_PORT_HTTP_API": "80",
        "MY_WEB_SERVICE_PORT_DNS": "53",
        "MY_WEB_PORT": "tcp://10.0.0.7:80",
        "MY_WEB_PORT_80_TCP": "tcp://10.0.0.7:80",
        "MY_WEB_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_PORT_80_TCP_PORT": "80",
        "MY_WEB_PORT_80_TCP_ADDR": "10.0.0.7",
        "MY_WEB_PORT_53_UDP": "udp://10.0.0.7:53",
        "MY_WEB_PORT_53_UDP_PROTO": "udp",
        "MY_WEB_PORT_53_UDP_PORT": "53",
        "MY_WEB_PORT_53_UDP_ADDR": "10.0.0.7",
    }


def test_addresses_of_the_other_family_are_bracketed() -> None:
    found = dict(service_variables(service("six", "fd00::1", ServicePort(port=443))))
    assert (found["SIX_SERVICE_HOST"], found["SIX_PORT"]) == ("fd00::1", "tcp://[fd00::1]:443")


def test_services_without_an_address_have_no_variables() -> None:
    none = service("headless", "None", ServicePort(port=80)), service("outside", ""), service("bare", "10.0.0.8")
    assert not [variable for each in none for variable in service_variables(each)]
