"""Resolution of a Service for requests of this server: a ready endpoint, or else the cluster IP.

Follows k8s.io/apiserver `pkg/util/proxy` (ResolveEndpoint, ResolveCluster). kube-apiserver uses endpoints only with
`--enable-aggregator-routing`, and never falls back to the cluster IP then; so does this server. Without the flag this
server still prefers endpoints, which are reachable where nothing forwards traffic for cluster IPs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from steersman.api.core.v1 import Service
from steersman.api.discovery.v1 import EndpointSlice
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import not_found, plain_internal, service_unavailable
from steersman.machinery.identity.schema import GroupResource
from steersman.net.client.transport import Address
from steersman.registry.services import Services

_LABEL = "kubernetes.io/service-name"


async def locate_service(services: Services, namespace: str, name: str, port: int) -> Address:
    """Return the address to connect to for a service port. Raises StatusError with upstream's messages."""
    known = services.objects("", "services")
    service: Service | None = await known.get_cached(namespace, name)
    if service is None:
        await known.refresh(namespace, name)
        service = await known.get_cached(namespace, name)
    if service is None:
        raise not_found(GroupResource("", "service"), name)
    spec, endpoints_only = service.spec, services.enable_aggregator_routing
    if spec.type == "ExternalName":
        if endpoints_only:
            raise plain_internal('unsupported service type "ExternalName"')
        return Address(spec.external_name, port)
    found = next((each for each in spec.ports if each.port == port), None)
    if found is None:
        raise service_unavailable(f"no service port {port} found for service {quote(name)}")
    slices = await _slices(services, namespace, name)
    families = spec.ip_families
    preferred = families[0] if families else ""
    slices.sort(key=lambda each: (each.address_type != preferred, random.random()))
    located = _endpoint(slices, found.name)
    if located is not None:
        return Address(*located, way=services.proxied.way(*located))
    if endpoints_only:
        raise service_unavailable(f"no endpoints available for service {quote(name)}")
    if spec.cluster_ip == "None":
        raise plain_internal('cannot route to service with ClusterIP "None"')
    return Address(spec.cluster_ip, port, way=services.proxied.way(spec.cluster_ip, port))


async def _slices(services: Services, namespace: str, name: str) -> list[EndpointSlice]:
    every = services.objects("discovery.k8s.io", "endpointslices").iterate_cached(namespace)
    return [each async for each, _ in every if each.metadata.labels.get(_LABEL) == name]


def _endpoint(slices: Sequence[EndpointSlice], port_name: str) -> tuple[str, int] | None:
    """Return address and port of a ready endpoint; the search begins at a random endpoint of each slice."""
    for each in slices:
        number = next((port.port for port in each.ports or () if port.name == port_name and port.port), None)
        endpoints = each.endpoints or []
        if number is None or not endpoints:
            continue
        start = random.randrange(len(endpoints))
        for endpoint in [*endpoints[start:], *endpoints[:start]]:
            if endpoint.conditions.ready is not False and endpoint.addresses:
                return endpoint.addresses[0], number
    return None
