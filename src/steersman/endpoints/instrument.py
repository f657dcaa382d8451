"""Runs a route's handler: finds it, turns its errors into answers, and counts both."""

from __future__ import annotations

import logging
from time import monotonic

from steersman.endpoints.handlers.apply import APPLY_YAML
from steersman.endpoints.installer import Route
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Request
from steersman.endpoints.responses import error_response
from steersman.machinery.errors import StatusError, too_many_requests
from steersman.net.message import Response
from steersman.storage.interface import StorageUnavailable

logger = logging.getLogger(__name__)


async def instrumented(metrics: RequestMetrics, route: Route, request: Request) -> Response:
    """What the route's handler answers to the request; a StatusError becomes its Status."""
    info = request.info
    try:
        response = await route.handler(info, request.method)(request)
    except StatusError as error:
        response = error_response(request, error)
    except StorageUnavailable as error:
        logger.warning("%s %s: %s", request.method, request.path, error)
        response = error_response(request, too_many_requests("storage is (re)initializing", retry_after=1))
    labels = metrics.labels(info, dry_run="dryRun" in request.query)
    if labels[0] == "PATCH" and request.headers.get("content-type") == APPLY_YAML:
        labels = ("APPLY", *labels[1:])
    metrics.total.inc((*labels, str(response.status)))
    if info.verb != "watch":
        metrics.duration.observe(monotonic() - request.received, labels)
        body = response.body
        if isinstance(body, bytes):
            metrics.sizes.observe(len(body), labels[:1] + labels[2:])
        elif isinstance(body, list):
            metrics.sizes.observe(sum(map(len, body)), labels[:1] + labels[2:])
    return response
