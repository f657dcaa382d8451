"""HTTP server of simulated pods: a page that identifies the pod and shows the request."""

from __future__ import annotations

import msgspec

from steersman.api.core.v1 import Pod
from steersman.net.message import BodyAborted, BodyTooLarge, Request, Response
from steersman.nodes.naming import hostname_of
from steersman.nodes.pod_life import takes_long
from steersman.nodes.server.agnhost import answer_of_agnhost
from steersman.nodes.server.kubelet import text
from steersman.nodes.server.reviews import answer_of_reviewer
from steersman.work.offloading import offload_if

_MOST_BODY = 1 << 20
_MOST_REVIEW = 8 << 20
_WITHOUT = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Header fields that are not shown, as a response may be shown to others."""


async def answer_of_pod(pod: Pod, port: int, request: Request, *, reviews: bool = False) -> Response:
    """Return the response of a pod: its identity, the request and the body.

    `/hostname` returns its name alone, `/healthz` and its like that it is healthy. Pods of agnhost respond as agnhost
    does. With `reviews` the pod answers requests for webhooks and aggregated APIs.
    """
    if (answer := await offload_if(takes_long(pod), answer_of_agnhost, pod, port, request)) is not None:
        return answer
    name = hostname_of(pod)
    if request.path == "/hostname":
        return text(200, f"{name}\n")
    if request.path in ("/healthz", "/livez", "/readyz"):
        return text(200, "ok\n")
    try:
        body = await request.body.read(_MOST_REVIEW if reviews else _MOST_BODY)
    except BodyTooLarge:
        return _too_large()
    except BodyAborted:
        return Response(400, [], b"", close=True)
    if reviews and (answer := answer_of_reviewer(request.path, body)) is not None:
        return answer
    if len(body) > _MOST_BODY:
        return _too_large()
    target = f"{request.path}?{request.query}" if request.query else request.path
    metadata = pod.metadata
    if "application/json" in request.headers.get("accept", ""):
        facts = {
            "hostname": name,
            "namespace": metadata.namespace,
            "pod": metadata.name,
            "node": pod.spec.node_name,
            "ip": pod.status.pod_ip,
            "port": port,
            "method": request.method,
            "target": target,
            "host": request.host,
            "headers": {key: value for key, value in request.headers.items() if key not in _WITHOUT},
            "body": body.decode(errors="replace"),
        }
        return Response(200, [("content-type", "application/json")], msgspec.json.encode(facts))
    lines = [
        f"Hostname: {name}",
        f"Pod: {metadata.namespace}/{metadata.name}",
        f"Node: {pod.spec.node_name}",
        f"Address: {pod.status.pod_ip}:{port}",
        "",
        f"{request.method} {target} HTTP/{request.version}",
        f"Host: {request.host}",
        *(f"{key}: {value}" for key, value in request.headers.items() if key not in _WITHOUT),
        "",
        body.decode(errors="replace"),
    ]
    return text(200, "\n".join(lines).rstrip("\n") + "\n")


def _too_large() -> Response:
    return Response(413, [("content-type", "text/plain; charset=utf-8")], b"too large\n", close=True)
