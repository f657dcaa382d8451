"""Runs a route's handler: finds it, turns its errors into answers, and counts both."""

from __future__ import annotations

from time import monotonic

from steersman.endpoints.installer import Route
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Request
from steersman.endpoints.responses import error_response
from steersman.machinery.errors import StatusError
from steersman.net.message import Response


async def instrumented(metrics: RequestMetrics, route: Route, request: Request) -> Response:
    """What the route's handler answers to the request; a StatusError becomes its Status."""
    info = request.info
    try:
        response = await route.handler(info, request.method)(request)
    except StatusError as error:
        response = error_response(request, error)
    labels = metrics.labels(info, dry_run="dryRun" in request.query)
    metrics.total.inc((*labels, str(response.status)))
    if info.verb != "watch":
        metrics.duration.observe(monotonic() - request.received, labels)
    return response
