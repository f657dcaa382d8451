"""Ports of a Service on its pods, and their order in Endpoints and EndpointSlices.

Upstream orders ports by the 128-bit FNV-1a hash of the text that go-spew prints for the Go struct (k8s.io/utils
dump.ForHash).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from steersman.api.core.v1 import Container, Pod, Service, ServicePort
from steersman.api.core.v1 import EndpointPort as CorePort
from steersman.api.discovery.v1 import EndpointPort
from steersman.machinery.built_in.pod_resources import is_sidecar

_OFFSET: Final = 0x6C62272E07BB014262B821756295C58D
_PRIME: Final = 0x0000000001000000000000000000013B
_MASK: Final = 2**128 - 1


class Port(NamedTuple):
    """A port, with the members that Endpoints and EndpointSlices have in common."""

    name: str | None
    protocol: str | None
    port: int | None
    app_protocol: str | None

    @property
    def of_slice(self) -> EndpointPort:
        """Return the port for an EndpointSlice."""
        return EndpointPort(name=self.name, protocol=self.protocol, port=self.port, app_protocol=self.app_protocol)

    @property
    def of_endpoints(self) -> CorePort:
        """Return the port for Endpoints."""
        return CorePort(
            name=self.name or "", protocol=self.protocol or "", port=self.port or 0, app_protocol=self.app_protocol
        )


Ports = tuple[Port, ...]
"""Ports in the order of EndpointSlices. All endpoints of an EndpointSlice have the same ports."""


def ports_of_pod(service: Service, pod: Pod) -> Ports:
    """Return the ports of a Service on a pod, without those for which the pod has no container port."""
    spec = service.spec
    if not spec.ports and spec.cluster_ip == "None":
        return ()
    numbers = ((each, find_port(pod, each)) for each in spec.ports)
    return in_order(
        Port(each.name, each.protocol, number, each.app_protocol) for each, number in numbers if number is not None
    )


def ports_of_slice(ports: Iterable[EndpointPort] | None) -> Ports:
    """Return the ports of an EndpointSlice."""
    return in_order(Port(each.name, each.protocol, each.port, each.app_protocol) for each in ports or ())


def ports_of_subset(ports: Iterable[CorePort]) -> Iterable[Port]:
    """Return the ports of a subset of Endpoints."""
    return (Port(each.name, each.protocol, each.port, each.app_protocol) for each in ports)


def in_order(ports: Iterable[Port]) -> Ports:
    """Return ports in the order of EndpointSlices."""
    return tuple(sorted(ports, key=_hash_in_slice))


def in_order_of_endpoints(ports: Iterable[Port]) -> list[Port]:
    """Return ports in the order of Endpoints."""
    return sorted(ports, key=_hash_in_endpoints)


def find_port(pod: Pod, port: ServicePort) -> int | None:
    """Return the pod's port number for a Service port: its target number, or that of the container port of its target
    name.

    Return None if the pod has no container port of that name.
    """
    target = port.target_port
    if isinstance(target, int):
        return target
    sidecars = [each for each in pod.spec.init_containers if is_sidecar(each)]
    containers: list[Container] = [*(pod.spec.containers or ()), *sidecars]
    for container in containers:
        for each in container.ports:
            if each.name == target and each.protocol == port.protocol:
                return each.container_port
    return None


@lru_cache(1024)
def _hash_in_slice(port: Port) -> int:
    name, protocol, app_protocol = (
        "<nil>" if each is None else each for each in (port.name, port.protocol, port.app_protocol)
    )
    number = "<nil>" if port.port is None else port.port
    return _fnv128a(
        f"(v1.EndpointPort){{Name:(*string){name} Protocol:(*v1.Protocol){protocol} Port:(*int32){number} "
        f"AppProtocol:(*string){app_protocol}}}"
    )


@lru_cache(1024)
def _hash_in_endpoints(port: Port) -> int:
    app_protocol = "<nil>" if port.app_protocol is None else port.app_protocol
    return _fnv128a(
        f"(v1.EndpointPort){{Name:(string){port.name or ''} Port:(int32){port.port} "
        f"Protocol:(v1.Protocol){port.protocol or ''} AppProtocol:(*string){app_protocol}}}"
    )


def _fnv128a(text: str) -> int:
    value = _OFFSET
    for each in text.encode():
        value = (value ^ each) * _PRIME & _MASK
    return value
