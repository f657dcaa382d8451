"""The proxy to nodes: to their kubelets, or to other ports."""

from __future__ import annotations

from steersman.api.core.v1 import Node
from steersman.endpoints.proxy.location import Location, join_preserving_trailing_slash
from steersman.endpoints.proxy.upgrade_aware import proxy
from steersman.endpoints.request import Request
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import bad_request
from steersman.net.client.dial import DialError, resolve
from steersman.net.message import Response
from steersman.registry.core.pods.kubelet import is_global_unicast
from steersman.registry.core.proxy_names import proxied_path, proxied_port, split_scheme_name_port
from steersman.registry.services import Services
from steersman.rest.context import Context


async def proxy_to_node(services: Services, ctx: Context, name: str, request: Request) -> Response:
    """Forward the request to the node's kubelet, or to another port of the node; return the answer. Raises StatusError."""
    parts = split_scheme_name_port(name)
    if parts is None:
        raise bad_request(f"invalid node request {quote(name)}")
    scheme, node_name, port = parts
    node: Node = await services.objects("", "nodes").get(ctx, node_name)
    kubelet = services.kubelet
    host, kubelet_port = kubelet.host(node), kubelet.port(node)
    try:
        addresses = await resolve(host)
    except DialError as error:
        raise bad_request(str(error)) from None
    if not all(map(is_global_unicast, addresses)):
        raise bad_request("address not allowed")
    at_kubelet = not port or port == str(kubelet_port)
    location = Location(
        scheme="https" if at_kubelet else scheme or "http",
        host=host,
        port=kubelet_port if at_kubelet else proxied_port(port),
        addresses=tuple(addresses),
        path=join_preserving_trailing_slash("", proxied_path(request.subpath)),
        transport=kubelet.transport() if at_kubelet else services.proxied.transport(),
    )
    return await proxy(request, location)
