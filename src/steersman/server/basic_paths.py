"""Paths that are no resources: index, version, health, metrics, profiling, OpenID discovery."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from steersman.endpoints.negotiation import (
    JSON,
    accepts,
    consumes,
    negotiate,
    route_not_acceptable,
    route_unsupported_media_type,
)
from steersman.endpoints.request import Request
from steersman.endpoints.responses import (
    JSON_TYPE,
    error_response,
    method_not_allowed,
    plain_response,
)
from steersman.machinery.codec.serializer import encode_in_order, pretty
from steersman.machinery.go.strings import trim_space
from steersman.net.message import Response
from steersman.server.health import HealthChecks
from steersman.server.server import Server
from steersman.server.version import version_info
from steersman.work.offloading import offload_if
from steersman.work.yielding import time_sliced

_METRICS_TYPE = ("content-type", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores")
_DISCOVERY_AGE: Final = 3600
"""Seconds for which the OpenID documents may be cached by default."""


def install_basic_paths(server: Server) -> None:
    """Add index, version, health, metrics and, if enabled, profiling."""
    server.add_web_service("/version", _version)
    for checks in (server.healthz, server.livez, server.readyz):
        for path in checks.paths:
            server.add_path(path, partial(_health, checks))
    started = ("process-start-time-unix", str(int(time.time())))
    server.add_path("/metrics", partial(_metrics, server, started))
    server.add_path("/metrics/slis", partial(_health_metrics, server, started))
    if server.config.profiling:
        from steersman.server.profiling import install_profiling

        install_profiling(server)
    index = partial(_index, server)
    server.add_path("/", index)
    server.add_path("/index.html", index)


async def _version(request: Request) -> Response:
    if request.method != "GET":
        return error_response(request, method_not_allowed())
    if not consumes(request.headers.get("content-type", ""), (JSON,)):
        return error_response(request, route_unsupported_media_type())
    if not accepts(request.headers.get("accept", ""), JSON):
        return error_response(request, route_not_acceptable((JSON,)))
    # as responsewriters.WriteRawJSON writes it: always indented, with no line break at the end
    return Response(200, [JSON_TYPE], pretty(encode_in_order(version_info())))


async def _health(checks: HealthChecks, request: Request) -> Response:
    return await checks.answer(request)


async def _index(server: Server, request: Request) -> Response:
    paths = [path for path in server.all_paths() if path not in ("/", "/index.html")]
    wanted = negotiate("application/json", pretty=True)
    response = plain_response({"paths": paths}, wanted)
    return Response(200, [JSON_TYPE], response.body)


async def _metrics(server: Server, started: tuple[str, str], request: Request) -> Response:
    """Answer with all metrics, formatted one metric at a time so that a scrape does not block other requests."""
    pieces = []
    async for text in time_sliced(server.config.registry.expose()):
        pieces.append(text.encode())
    if server.gather is not None:
        pieces = await server.gather(pieces)
    return Response(200, [_METRICS_TYPE, started], pieces)


async def _health_metrics(server: Server, started: tuple[str, str], request: Request) -> Response:
    """Answer with the health checks as metrics: 1 for each passing check."""
    lines = [
        "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n",
        "# TYPE kubernetes_healthcheck gauge\n",
    ]
    for checks in (server.healthz, server.livez, server.readyz):
        kind = checks.path.strip("/")
        async for name, wrong in checks.results():
            lines.append(f'kubernetes_healthcheck{{name="{name}",type="{kind}"}} {int(wrong is None)}\n')
    return Response(200, [_METRICS_TYPE, started], "".join(lines).encode())


def install_openid(
    server: Server,
    configuration: Callable[[], bytes],
    keys: Callable[[], bytes],
    max_age: Callable[[], int] = lambda: _DISCOVERY_AGE,
) -> None:
    """Add the documents for verifying service account tokens (OpenID Connect Discovery 1.0).

    The documents are created at each request; clients may cache them for `max_age` seconds.
    """
    for path, media, make in (
        ("/.well-known/openid-configuration", "application/json", configuration),
        ("/openid/v1/jwks", "application/jwk-set+json", keys),
    ):
        server.add_web_service(path, partial(_openid, media, make, max_age))


async def _openid(media: str, make: Callable[[], bytes], max_age: Callable[[], int], request: Request) -> Response:
    if request.method != "GET":
        return error_response(request, method_not_allowed())
    accept = request.headers.get("accept", "*/*")
    accepted = [trim_space(clause.partition(";")[0]) for clause in accept.split(",")]
    if accept and not {media, "*/*"} & set(accepted):
        return error_response(request, route_not_acceptable((media,)))
    cache = ("cache-control", f"public, max-age={max_age()}")
    return Response(200, [("content-type", media), cache], await offload_if(True, make))
