"""IP families of Services, and addresses of pods by family."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import Pod, Service
from steersman.machinery.validation.ip import ip_text, is_plain_ipv4, parse_ip_sloppy

IPV4: Final = "IPv4"
IPV6: Final = "IPv6"


def canonical(address: str) -> tuple[str, str] | None:
    """Return the family and canonical text of an address; None for an invalid address."""
    if is_plain_ipv4(address):
        return IPV4, address
    parsed = parse_ip_sloppy(address)
    if parsed is None:
        return None
    text = ip_text(parsed)
    return (IPV6 if ":" in text else IPV4), text


def pod_addresses(pod: Pod, family: str) -> list[str]:
    """Return the addresses of a pod in one family."""
    addresses = (canonical(each.ip) for each in pod.status.pod_ips)
    return [each[1] for each in addresses if each is not None and each[0] == family]


def families_of(service: Service) -> list[str]:
    """Return the families in which a Service has EndpointSlices."""
    spec = service.spec
    if spec.ip_families:
        return [each for each in (IPV4, IPV6) if each in spec.ip_families]
    if not has_cluster_ip(service):  # a headless Service, stored by a server without IP families
        return [IPV4, IPV6]
    return [IPV6 if ":" in spec.cluster_ip else IPV4]


def has_cluster_ip(service: Service) -> bool:
    """Return True if a Service has a cluster IP; without one it is headless."""
    return service.spec.cluster_ip not in ("", "None")


def first_family(service: Service, pod: Pod) -> str:
    """Return the family of the addresses in Endpoints."""
    spec = service.spec
    if spec.ip_families:
        return spec.ip_families[0]
    address = spec.cluster_ip if has_cluster_ip(service) else pod.status.pod_ip
    return IPV6 if ":" in address else IPV4
