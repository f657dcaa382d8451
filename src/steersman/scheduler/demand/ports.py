"""Host ports of pods (framework.HostPortInfo)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import is_sidecar

HostPort = tuple[str, str, int]
"""Address, protocol and port."""

ANY: Final = "0.0.0.0"


def host_ports(spec: core.PodSpec) -> Sequence[HostPort]:
    """Return the host ports of containers and sidecars."""
    found = [
        (port.host_ip or ANY, port.protocol or "TCP", port.host_port)
        for container in (*filter(is_sidecar, spec.init_containers), *(spec.containers or ()))
        for port in container.ports
        if port.host_port > 0
    ]
    return tuple(found)


def conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Return True if a wanted port is in use on the same address, or if one of both is for all addresses."""
    taken: dict[tuple[str, int], set[str]] = {}
    for address, protocol, port in used:
        taken.setdefault((protocol, port), set()).add(address)
    for address, protocol, port in wanted:
        found = taken.get((protocol, port))
        if found and (address == ANY or ANY in found or address in found):
            return True
    return False
