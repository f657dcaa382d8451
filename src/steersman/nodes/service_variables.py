"""Environment variables that tell containers the addresses of Services (pkg/kubelet/envvars)."""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import Final

from steersman.api.core.v1 import Service
from steersman.net.ascii import lower
from steersman.net.client.dial import host_port

_VARIABLE: Final = str.maketrans(f"{string.ascii_lowercase}-", f"{string.ascii_uppercase}_")


def service_variables(services: Iterable[Service]) -> dict[str, str]:
    """Return the variables `NAME_SERVICE_HOST` and so on, for Services that have a cluster IP."""
    found: dict[str, str] = {}
    for service in services:
        address, ports = service.spec.cluster_ip, service.spec.ports
        if address in ("", "None") or not ports:
            continue
        name = _variable(service.metadata.name)
        found[f"{name}_SERVICE_HOST"] = address
        found[f"{name}_SERVICE_PORT"] = str(ports[0].port)
        found |= {f"{name}_SERVICE_PORT_{_variable(each.name)}": str(each.port) for each in ports if each.name}
        for number, each in enumerate(ports):
            protocol = each.protocol or "TCP"
            url = f"{lower(protocol)}://{host_port(address, each.port)}"
            if not number:
                found[f"{name}_PORT"] = url
            prefix = f"{name}_PORT_{each.port}_{protocol}"
            found |= {
                prefix: url,
                f"{prefix}_PROTO": lower(protocol),
                f"{prefix}_PORT": str(each.port),
                f"{prefix}_ADDR": address,
            }
    return found


def _variable(name: str) -> str:
    return name.translate(_VARIABLE)
