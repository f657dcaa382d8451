"""Cluster DNS names, as programs in simulated containers resolve them."""

from __future__ import annotations

from typing import Final

from steersman.client.client import Client
from steersman.client.resources import ENDPOINT_SLICES, SERVICES

_DOMAIN: Final = "svc.cluster.local"
_MOST: Final = 100
"""Addresses of one name."""
_MOST_LABELS: Final = 8


async def resolve_name(client: Client, namespace: str, name: str) -> str:
    """Return the full name of a Service or pod and its addresses, separated by spaces; "" for an unknown name.

    A headless Service has the addresses of the ready pods behind it. Raises StatusError, Unreachable.
    """
    labels = name.rstrip(".").removesuffix(f".{_DOMAIN}").removesuffix(".svc").split(".")
    if not all(labels) or len(labels) > _MOST_LABELS or len(name) > 253:
        return ""
    if len(labels) > 2:  # the name of one pod behind a Service
        return await _of_pod(client, labels)
    service, place = labels[0], labels[1] if len(labels) == 2 else namespace
    service_object = await client.find(SERVICES, service, place)
    if service_object is None:
        return ""
    full = f"{service}.{place}.{_DOMAIN}"
    if service_object.spec.type == "ExternalName":
        return ""
    if service_object.spec.cluster_ip not in ("", "None"):
        return " ".join((full, *(service_object.spec.cluster_ips or [service_object.spec.cluster_ip])[:_MOST]))
    addresses = [address for _, address in await _endpoints(client, service, place)]
    return " ".join((full, *addresses[:_MOST])) if addresses else ""


async def _of_pod(client: Client, labels: list[str]) -> str:
    hostname, service, place = labels[0], labels[1], labels[2]
    if len(labels) > 3:
        return ""
    addresses = [address for name, address in await _endpoints(client, service, place) if name == hostname]
    return " ".join((f"{hostname}.{service}.{place}.{_DOMAIN}", *addresses[:_MOST])) if addresses else ""


async def _endpoints(client: Client, service: str, namespace: str) -> list[tuple[str, str]]:
    """Return host names and addresses of the ready pods behind a Service."""
    slices = await client.list(
        ENDPOINT_SLICES, namespace, label_selector=f"kubernetes.io/service-name={service}", limit=_MOST
    )
    return [
        (endpoint.hostname or "", address)
        for each in slices.items
        for endpoint in each.endpoints or ()
        if endpoint.conditions.ready is not False
        for address in endpoint.addresses or ()
    ]
