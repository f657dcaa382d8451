"""Environment variables that tell containers the addresses of Services (pkg/kubelet/envvars)."""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import Service
from steersman.net.ascii import lower
from steersman.net.client.dial import host_port

_VARIABLE: Final = str.maketrans(f"{string.ascii_lowercase}-", f"{string.ascii_uppercase}_")


def service_variables(service: Service) -> Iterator[tuple[str, str]]:
    """Yield the variables `NAME_SERVICE_HOST` and so on of a Service; none if it has no cluster IP."""
    address, ports = service.spec.cluster_ip, service.spec.ports
    if address in ("", "None") or not ports:
        return
    name = _variable(service.metadata.name)
    yield f"{name}_SERVICE_HOST", address
    yield f"{name}_SERVICE_PORT", str(ports[0].port)
    for each in ports:
        if each.name:
            yield f"{name}_SERVICE_PORT_{_variable(each.name)}", str(each.port)
    for number, each in enumerate(ports):
        protocol = each.protocol or "TCP"
        url = f"{lower(protocol)}://{host_port(address, each.port)}"
        if not number:
            yield f"{name}_PORT", url
        prefix = f"{name}_PORT_{each.port}_{protocol}"
        yield prefix, url
        yield f"{prefix}_PROTO", lower(protocol)
        yield f"{prefix}_PORT", str(each.port)
        yield f"{prefix}_ADDR", address


def _variable(name: str) -> str:
    return name.translate(_VARIABLE)
