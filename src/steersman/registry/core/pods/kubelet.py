"""Requests about a pod that its kubelet or the pod itself answers: logs, exec, attach, port forwarding and proxying.

Follows pkg/registry/core/pod (LogLocation, AttachLocation, ExecLocation, PortForwardLocation, ResourceLocation).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import decide
from steersman.endpoints.parameters import decode_parameters
from steersman.endpoints.proxy.location import Location, encoded_query, join_preserving_trailing_slash
from steersman.endpoints.proxy.location_streamer import stream_location
from steersman.endpoints.proxy.stream_translator import Streams, is_translated, translate
from steersman.endpoints.proxy.stream_tunnel import is_tunneled, tunnel
from steersman.endpoints.proxy.upgrade_aware import proxy
from steersman.endpoints.request import Request
from steersman.machinery.built_in.pod_resources import all_containers
from steersman.machinery.errors.field import FORBIDDEN, FieldError, Path, forbidden, invalid, quote
from steersman.machinery.errors.status import StatusError, bad_request, internal, not_found
from steersman.machinery.errors.status import forbidden as forbidden_request
from steersman.machinery.errors.status import invalid as invalid_object
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupKind, GroupResource
from steersman.machinery.validation.ip import parse_ip_sloppy, unmapped
from steersman.net.message import Response
from steersman.registry.core.proxy_names import proxied_path, proxied_port, split_scheme_name_port
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.work.offloading import offload_if

_PODS: Final = GroupResource("", "pods")
_LOG_OPTIONS: Final = GroupKind("", "PodLogOptions")


async def pod_logs(services: Services, ctx: Context, name: str, request: Request) -> Response:
    """Return the output of a container; 204 while the pod has no node. Raises StatusError."""
    options = decode_parameters(core.PodLogOptions, request.query)
    if errors := list(_validate_log_options(options)):
        raise invalid_object(_LOG_OPTIONS, name, errors)
    pod: core.Pod = await services.objects("", "pods").get(ctx, name)
    container = choose_container(pod, options.container)
    if not pod.spec.node_name:
        return Response(204)
    location = _at_kubelet(
        services,
        await _node_of(services, ctx, pod),
        f"/containerLogs/{pod.metadata.namespace}/{name}/{container}",
        encoded_query(_log_parameters(options)),
        verify=not options.insecure_skip_tls_verify_backend,
    )
    return await stream_location(request, location, GroupResource("", "pods/log"), name)


def _log_parameters(options: core.PodLogOptions) -> list[tuple[str, str]]:
    """Return the options as query parameters of a kubelet."""
    flags = (("follow", options.follow), ("previous", options.previous), ("timestamps", options.timestamps))
    values = (
        ("sinceSeconds", options.since_seconds),
        ("sinceTime", options.since_time),
        ("tailLines", options.tail_lines),
        ("limitBytes", options.limit_bytes),
    )
    set_flags = [(name, "true") for name, flag in flags if flag]
    return set_flags + [(name, str(value)) for name, value in values if value is not None]


def _validate_log_options(options: core.PodLogOptions) -> Iterator[FieldError]:
    if options.tail_lines is not None and options.tail_lines < 0:
        yield invalid(Path("tailLines"), options.tail_lines, "must be greater than or equal to 0")
    if options.limit_bytes is not None and options.limit_bytes < 1:
        yield invalid(Path("limitBytes"), options.limit_bytes, "must be greater than 0")
    if options.since_seconds is not None:
        if options.since_time is not None:
            yield FieldError(FORBIDDEN, "[]", detail="at most one of `sinceTime` or `sinceSeconds` may be specified")
        elif options.since_seconds < 1:
            yield invalid(Path("sinceSeconds"), options.since_seconds, "must be greater than 0")
    if options.stream is not None:
        yield forbidden(Path("stream"), "may not be specified")


def choose_container(pod: core.Pod, name: str) -> str:
    """Return the container that the request names, or the only container of the pod. Raises StatusError 400."""
    names = [container.name for container in all_containers(pod.spec)]
    if name:
        if name not in names:
            raise bad_request(f"container {name} is not valid for pod {pod.metadata.name}")
        return name
    containers = pod.spec.containers or []
    if len(containers) == 1:
        return containers[0].name
    text = f"a container name must be specified for pod {pod.metadata.name}"
    raise bad_request(f"{text}, choose one of: [{' '.join(names)}]" if containers else text)


async def pod_exec(services: Services, ctx: Context, name: str, request: Request) -> Response:
    """Run a command in a container. Raises StatusError."""
    return await _command_streams(services, ctx, name, request, decode_parameters(core.PodExecOptions, request.query))


async def pod_attach(services: Services, ctx: Context, name: str, request: Request) -> Response:
    """Attach to the process of a container. Raises StatusError."""
    return await _command_streams(services, ctx, name, request, decode_parameters(core.PodAttachOptions, request.query))


async def _command_streams(
    services: Services, ctx: Context, name: str, request: Request, options: core.PodExecOptions | core.PodAttachOptions
) -> Response:
    await _check_may_create(services, ctx, name)
    pod: core.Pod = await services.objects("", "pods").get(ctx, name)
    container = choose_container(pod, options.container)
    streams = (("input", options.stdin), ("output", options.stdout), ("error", options.stderr), ("tty", options.tty))
    pairs = [(at_kubelet, "1") for at_kubelet, wanted in streams if wanted]
    what = "attach"
    if isinstance(options, core.PodExecOptions):
        what = "exec"
        pairs += [("command", each) for each in options.command or ()]
    path = f"/{what}/{pod.metadata.namespace}/{name}/{container}"
    location, node = await _with_node(services, ctx, pod, path, encoded_query(pairs))
    if is_translated(request) and not _speaks_websockets(node):
        return translate(request, location, Streams(options.stdin, options.stdout, options.stderr, options.tty))
    return await proxy(request, location, upgrade_required=True)


async def pod_port_forward(services: Services, ctx: Context, name: str, request: Request) -> Response:
    """Connect to ports of a pod through its node. Raises StatusError."""
    query = await offload_if(request.has_long_query, _ports_query, request)
    await _check_may_create(services, ctx, name)
    pod: core.Pod = await services.objects("", "pods").get(ctx, name)
    path = f"/portForward/{pod.metadata.namespace}/{name}"
    location, node = await _with_node(services, ctx, pod, path, query)
    if is_tunneled(request) and not _speaks_websockets(node):
        return await tunnel(request, location)
    return await proxy(request, location, upgrade_required=True)


def _ports_query(request: Request) -> str:
    """Return the requested ports as a query string for a kubelet. Raises StatusError 400."""
    ports = decode_parameters(core.PodPortForwardOptions, request.query).ports
    return encoded_query([("port", ",".join(map(str, ports)))]) if ports else ""


def _speaks_websockets(node: core.Node) -> bool:
    """Return True if the kubelet declares that it accepts all WebSockets itself (ExtendWebSocketsToKubelet)."""
    return "ExtendWebSocketsToKubelet" in node.status.declared_features


async def _check_may_create(services: Services, ctx: Context, name: str) -> None:
    """Raise StatusError 403 unless the request user may create the subresource.

    A WebSocket starts with GET and SPDY with POST, so a user who may only get must not stream.
    """
    if ctx.action.verb == "create":
        return
    create = Action("create", "", "v1", "pods", ctx.action.subresource, ctx.action.namespace, name)
    verdict = await decide(services.authorizer, Attributes(ctx.user, create))
    if verdict.error and not verdict.allowed:
        raise internal(verdict.error)
    if not verdict.allowed:
        raise forbidden_request(_PODS, name, verdict.reason)


async def _with_node(
    services: Services, ctx: Context, pod: core.Pod, path: str, query: str
) -> tuple[Location, core.Node]:
    if not pod.spec.node_name:
        raise bad_request(f"pod {pod.metadata.name} does not have a host assigned")
    node = await _node_of(services, ctx, pod)
    return _at_kubelet(services, node, path, query), node


async def _node_of(services: Services, ctx: Context, pod: core.Pod) -> core.Node:
    """Return the node of a pod. Raises StatusError; a missing node is reported as a pod, as in upstream's
    pkg/registry/core/pod.
    """
    try:
        node: core.Node = await services.objects("", "nodes").get(ctx, pod.spec.node_name)
    except StatusError as error:
        if error.code != 404:
            raise
        raise not_found(_PODS, pod.spec.node_name) from None
    return node


def _at_kubelet(services: Services, node: core.Node, path: str, query: str, *, verify: bool = True) -> Location:
    """Return the location of a path on the node's kubelet. Raises StatusError if the node has no usable address."""
    kubelet = services.kubelet
    return Location(
        scheme="https",
        host=kubelet.host(node),
        port=kubelet.port(node),
        path=path,
        query=query,
        transport=kubelet.transport(verify=verify),
    )


async def proxy_to_pod(services: Services, ctx: Context, name: str, request: Request) -> Response:
    """Forward the request to the pod itself and return its answer. Raises StatusError."""
    parts = split_scheme_name_port(name)
    if parts is None:
        raise bad_request(f"invalid pod request {quote(name)}")
    scheme, pod_name, port = parts
    pod: core.Pod = await services.objects("", "pods").get(ctx, pod_name)
    address = pod.status.pod_ips[0].ip if pod.status.pod_ips else ""
    if not is_global_unicast(address):
        raise bad_request("address not allowed")
    location = Location(
        scheme=scheme or "http",
        host=address,
        port=proxied_port(port) if port else _first_port(pod),
        path=join_preserving_trailing_slash("", proxied_path(request.subpath)),
        transport=services.proxied.transport(),
    )
    return await proxy(request, location)


def _first_port(pod: core.Pod) -> int | None:
    """Return the first port that a container declares; None for the default port of the scheme."""
    return next((c.ports[0].container_port for c in pod.spec.containers or [] if c.ports), None)


def is_global_unicast(address: str) -> bool:
    """Return True for a global unicast address as Go defines it.

    Private addresses are included; loopback, link-local, multicast and broadcast addresses are not. IPv4 in IPv6 form
    counts as the IPv4 address that it leads to.
    """
    ip = parse_ip_sloppy(address)
    if ip is None:
        return False
    ip = unmapped(ip)
    return not (
        ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local or str(ip) == "255.255.255.255"
    )
