"""Logs, exec, attach, port forwarding and proxying: the requests about a pod that its node or the pod itself answers.

Everything up to the connection is upstream's: the options, the choice of a container, the way to the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from steersman.api.core import v1 as core
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import decide
from steersman.machinery.errors import (
    GroupKind,
    GroupResource,
    StatusError,
    bad_request,
    internal,
    not_implemented,
)
from steersman.machinery.errors import forbidden as forbidden_request
from steersman.machinery.errors import invalid as invalid_object
from steersman.machinery.field import FORBIDDEN, FieldError, Path, forbidden, invalid, quote
from steersman.machinery.pod_resources import all_containers
from steersman.machinery.times import TimeError, canonical_time
from steersman.machinery.validation.ip import parse_ip_sloppy
from steersman.net.message import Response
from steersman.registry.core.nodes import kubelet_host
from steersman.registry.core.proxy_names import split_scheme_name_port
from steersman.registry.services import Services
from steersman.rest.context import Context

_PODS: Final = GroupResource("", "pods")
_LOG_OPTIONS: Final = GroupKind("", "PodLogOptions")
_INT64: Final = 1 << 63
_NUMBERS: Final = ("sinceSeconds", "tailLines", "limitBytes")


async def pod_logs(services: Services, ctx: Context, name: str, request: Any) -> Any:
    """What a container has printed; 204 while the pod has no node. Raises StatusError."""
    query = request.query
    numbers = {key: _int64(query[key]) for key in _NUMBERS if key in query}
    since = _time(query["sinceTime"]) if "sinceTime" in query else None
    if errors := list(_log_option_errors(numbers, since is not None, "stream" in query)):
        raise invalid_object(_LOG_OPTIONS, name, errors)
    pod: core.Pod = await services.objects("", "pods").get(ctx, name)
    choose_container(pod, query.get("container", ""))
    if not pod.spec.node_name:
        return Response(204)
    raise await _not_connected(services, ctx, pod)


def _log_option_errors(numbers: dict[str, int], since_time: bool, stream: bool) -> Iterator[FieldError]:
    if numbers.get("tailLines", 0) < 0:
        yield invalid(Path("tailLines"), numbers["tailLines"], "must be greater than or equal to 0")
    if numbers.get("limitBytes", 1) < 1:
        yield invalid(Path("limitBytes"), numbers["limitBytes"], "must be greater than 0")
    if "sinceSeconds" in numbers:
        if since_time:
            yield FieldError(FORBIDDEN, "[]", detail="at most one of `sinceTime` or `sinceSeconds` may be specified")
        elif numbers["sinceSeconds"] < 1:
            yield invalid(Path("sinceSeconds"), numbers["sinceSeconds"], "must be greater than 0")
    if stream:
        yield forbidden(Path("stream"), "may not be specified")


def _int64(text: str) -> int:
    """A number as Go's strconv reads it. Raises StatusError 400."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise bad_request(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    if len(digits) > 20 or not -_INT64 <= int(text) < _INT64:
        raise bad_request(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return int(text)


def _time(text: str) -> str | None:
    """A time in a query. Raises StatusError 400."""
    try:
        return canonical_time(text)
    except TimeError as error:
        raise bad_request(str(error)) from None


def choose_container(pod: core.Pod, name: str) -> str:
    """The container a request is about: the one it names, or the only one. Raises StatusError 400."""
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


async def pod_exec(services: Services, ctx: Context, name: str, request: Any) -> Any:
    """Runs a command in a container, or attaches to it. Raises StatusError."""
    await _check_may_create(services, ctx, name)
    pod: core.Pod = await services.objects("", "pods").get(ctx, name)
    choose_container(pod, request.query.get("container", ""))
    raise await _no_stream(services, ctx, pod)


async def pod_port_forward(services: Services, ctx: Context, name: str, request: Any) -> Any:
    """Connects to ports of a pod through its node. Raises StatusError."""
    await _check_may_create(services, ctx, name)
    pod: core.Pod = await services.objects("", "pods").get(ctx, name)
    raise await _no_stream(services, ctx, pod)


async def _check_may_create(services: Services, ctx: Context, name: str) -> None:
    """A WebSocket starts with GET, SPDY with POST: whoever may only get may not stream. Raises StatusError 403."""
    if ctx.verb == "create":
        return
    verdict = await decide(
        services.authorizer,
        Attributes(
            user=ctx.user,
            verb="create",
            namespace=ctx.namespace,
            api_version="v1",
            resource="pods",
            subresource=ctx.subresource,
            name=name,
            resource_request=True,
        ),
    )
    if verdict.error and not verdict.allowed:
        raise internal(verdict.error)
    if not verdict.allowed:
        raise forbidden_request(_PODS, name, verdict.reason)


async def _no_stream(services: Services, ctx: Context, pod: core.Pod) -> StatusError:
    if not pod.spec.node_name:
        return bad_request(f"pod {pod.metadata.name} does not have a host assigned")
    return await _not_connected(services, ctx, pod)


async def _not_connected(services: Services, ctx: Context, pod: core.Pod) -> StatusError:
    """What is said where upstream would connect to the kubelet. Raises StatusError if there is no way to it."""
    node: core.Node = await services.objects("", "nodes").get(ctx, pod.spec.node_name)
    host = kubelet_host(node)
    return not_implemented(f"this server does not connect to kubelets: the one at {host} was not asked")


async def proxy_to_pod(services: Services, ctx: Context, name: str, request: Any) -> Any:
    """Finds the address that a proxy request is for. Raises StatusError."""
    parts = split_scheme_name_port(name)
    if parts is None:
        raise bad_request(f"invalid pod request {quote(name)}")
    pod: core.Pod = await services.objects("", "pods").get(ctx, parts[1])
    address = pod.status.pod_ips[0].ip if pod.status.pod_ips else ""
    if not _is_global_unicast(address):
        raise bad_request("address not allowed")
    raise not_implemented(f"this server does not connect to pods: the one at {address} was not asked")


def _is_global_unicast(address: str) -> bool:
    """What Go calls so: private addresses too, but not loopback, link-local, multicast or broadcast ones."""
    ip = parse_ip_sloppy(address)
    return ip is not None and not (
        ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local or str(ip) == "255.255.255.255"
    )
