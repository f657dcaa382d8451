"""`services/NAME/proxy`: forwards requests through the API server to an endpoint of a Service.

Follows pkg/registry/core/service/storage (`ResourceLocation`).
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from steersman.api.core.v1 import EndpointAddress, Endpoints, Pod, Service
from steersman.endpoints.proxy.location import Location, join_preserving_trailing_slash
from steersman.endpoints.proxy.upgrade_aware import proxy
from steersman.endpoints.request import Request
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.go_numbers import parse_int
from steersman.machinery.errors.status import StatusError, bad_request, not_found, service_unavailable
from steersman.machinery.identity.schema import GroupResource
from steersman.net.message import Response
from steersman.registry.core.proxy_names import proxied_path, split_scheme_name_port
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.objects import Reading

T = TypeVar("T")

_SERVICES: Final = GroupResource("", "services")


async def locate(services: Services, ctx: Context, text: str) -> Location:
    """Return the location of an endpoint of the service in `text` (`NAME`, `NAME:PORT`, `SCHEME:NAME:PORT`).

    Raises StatusError: BadRequest, NotFound, ServiceUnavailable.
    """
    parts = split_scheme_name_port(text)
    if parts is None:
        raise bad_request(f"invalid service request {quote(text)}")
    scheme, name, port = parts
    with contextlib.suppress(ValueError):
        port = await _port_name(services, ctx, name, parse_int(port))
    endpoints = await _endpoints(services, ctx, name)
    if not endpoints.subsets:
        raise service_unavailable(f"no endpoints available for service {quote(name)}")
    for subset in _from_anywhere(endpoints.subsets):
        number = next((each.port for each in subset.ports if each.name == port), None)
        if number is None:
            continue
        for address in _from_anywhere(subset.addresses):
            if _is_pod(services, ctx, address):
                return Location(
                    scheme=scheme or "http", host=address.ip, port=number, transport=services.proxied.transport()
                )
    raise service_unavailable(f"no endpoints available for service {quote(text)}")


async def _port_name(services: Services, ctx: Context, name: str, number: int) -> str:
    service: Service = await services.objects("", "services").get(ctx, name)
    for port in service.spec.ports:
        if port.port == number:
            return port.name
    raise service_unavailable(f"no service port {number} found for service {quote(name)}")


async def _endpoints(services: Services, ctx: Context, name: str) -> Endpoints:
    try:
        found: Endpoints = await services.objects("", "endpoints").get(ctx, name)
    except StatusError as error:
        if error.code == 404:  # the message names the service that the client requested
            raise not_found(_SERVICES, name) from error
        raise
    return found


def _from_anywhere(items: Sequence[T]) -> list[T]:
    """Return all items, rotated to begin at a random item."""
    start = random.randrange(len(items)) if items else 0
    return [*items[start:], *items[:start]]


def _is_pod(services: Services, ctx: Context, address: EndpointAddress) -> bool:
    """Return True if a pod of the namespace has the address; the server proxies to nothing else."""
    target = address.target_ref
    if target is None or target.namespace != ctx.action.namespace:
        return False
    return address.ip in (services.objects("", "pods").read_cached(ctx.action.namespace, target.name, _POD_IPS) or ())


def _pod_ips(pod: Pod) -> tuple[str, ...]:
    return tuple(each.ip for each in pod.status.pod_ips)


_POD_IPS: Final = Reading(_pod_ips, "status.podIPs")


async def proxy_to_service(services: Services, ctx: Context, name: str, request: Request) -> Response:
    """Forward the request to an endpoint of the service and return its answer. Raises StatusError."""
    location = await locate(services, ctx, name)
    path = join_preserving_trailing_slash("", proxied_path(request.subpath))
    return await proxy(request, replace(location, path=path))
