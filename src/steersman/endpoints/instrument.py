"""Running of a route's handler: finding it, converting errors to answers, and metrics."""

from __future__ import annotations

import logging
import re
from concurrent.futures import Executor
from functools import partial
from typing import Final, Protocol

from steersman.authentication.user import SYSTEM_MASTERS
from steersman.endpoints.bodies import APPLY_YAML, FEWEST_DIGITS, large_length
from steersman.endpoints.compression import COMPRESS_OVER, compressed
from steersman.endpoints.installer import Handle
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Handler, Request
from steersman.endpoints.responses import long_error_response
from steersman.endpoints.streamed import StreamedBody
from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.body_budget import MAX_BYTES
from steersman.machinery.large_work.large_requests import LargeRequests
from steersman.machinery.large_work.permits import Permit
from steersman.machinery.metrics import Labels
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response
from steersman.work.offloading import current

logger = logging.getLogger(__name__)

_REMOVED_IN: Final = re.compile(r"unavailable in v([0-9]+\.[0-9]+)\+", re.ASCII).search
_WITH_BODIES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_ROOM: Final = 3 << 20
"""Bytes reserved for a body without a Content-Length."""


class Instruments(Protocol):
    """The part of a server's configuration that is needed here."""

    @property
    def metrics(self) -> RequestMetrics:
        """Return the metrics of requests."""
        ...

    @property
    def large_requests(self) -> LargeRequests:
        """Return the limits of work on large requests."""
        ...

    @property
    def executor(self) -> Executor:
        """Return the executor with the worker threads."""
        ...


class Routed(Protocol):
    """A route, or the routes of a custom resource; `warning` is the warning for every request that reaches a
    handler.
    """

    @property
    def warning(self) -> str:
        """Return the warning for every request that reaches a handler, "" without one."""
        ...

    @property
    def by_definition(self) -> bool:
        """Return True for a resource of a CustomResourceDefinition, whose warning is free text."""
        ...

    def handler(self, request: Request) -> Handle:
        """Return the handler of the request. Raises StatusError."""


async def instrumented(config: Instruments, route: Routed, request: Request) -> Response:
    """Return the answer of the route's handler; a StatusError becomes its Status."""
    info, metrics = request.info, config.metrics
    try:
        handle = route.handler(request)
        if route.warning:
            request.warnings.append(route.warning)
            # the warnings of definitions are free text
            removed_in = "" if route.by_definition else _removed_in(route.warning)
            metrics.deprecated.set(1, (*metrics.labels(info, dry_run=False)[2:6], removed_in))
            if request.audit is not None:
                request.audit.annotate_at_end(_deprecation(removed_in))
        size = 0
        if request.method in _WITH_BODIES:
            length = request.headers.get("content-length")
            if length is None or len(length) >= FEWEST_DIGITS:
                size = _size_of_large_body(request)
        response = await (_with_room(config, handle, request, size) if size else handle(request))
    except StatusError as error:
        response = await long_error_response(request, error)
    body = response.body
    if (type(body) is not bytes or len(body) > COMPRESS_OVER) and not info.long_running:
        response = await compressed(request, response, config.executor)
        body = response.body
    labels = info.labels
    if not labels or "dryRun" in request.query:
        labels = metrics.labels(info, dry_run="dryRun" in request.query)
    if labels[0] == "PATCH" and request.headers.get("content-type") == APPLY_YAML:
        labels = ("APPLY", *labels[1:])
    if type(body) is bytes:
        metrics.answered(labels, response.status, monotonic() - request.received, len(body))
    else:
        _count(metrics, request, labels, response)
    return response


def _removed_in(warning: str) -> str:
    """Return the release in which a deprecated version is removed according to its warning, "" if there is none."""
    found = _REMOVED_IN(warning)
    return found[1] if found else ""


def _deprecation(removed_in: str) -> dict[str, str]:
    """Return the annotations of the audit event for a request in a deprecated version."""
    return {"k8s.io/deprecated": "true"} | ({"k8s.io/removed-release": removed_in} if removed_in else {})


def _size_of_large_body(request: Request) -> int:
    """Return the bytes to reserve for a body; 0 if it is not large, or only passed on."""
    if "content-length" in request.headers:
        size = large_length(request)
    else:
        size = 0 if request.method == "DELETE" else _ROOM
    if size and (request.info.long_running or SYSTEM_MASTERS in request.user.groups):
        return 0
    return min(size, MAX_BYTES)


async def _with_room(config: Instruments, handle: Handler, request: Request, size: int) -> Response:
    """Return the handler's answer, once there is room for the body. Raises StatusError 429 if too many requests
    wait.
    """
    bodies, user, account = config.large_requests.bodies, request.user.name, current()
    await bodies.acquire(user, size)
    account.permit = permit = Permit(config.large_requests.permits, user, size)
    try:
        return await handle(request)
    finally:
        account.permit = None  # tasks of this account may outlive the request
        permit.release()
        bodies.release(user, size)


def _count(metrics: RequestMetrics, request: Request, labels: Labels, response: Response) -> None:
    """Count an answer that is not a single piece; for a watch, count only its start."""
    body = response.body
    if isinstance(body, StreamedBody):
        metrics.total.inc((*labels, str(response.status)))
        body.on_request_end(partial(_observe, metrics, request, labels, body))
    elif request.info.action.verb == "watch":
        metrics.total.inc((*labels, str(response.status)))
    else:
        size = sum(map(len, body)) if isinstance(body, list) else None
        metrics.answered(labels, response.status, monotonic() - request.received, size)


def _observe(metrics: RequestMetrics, request: Request, labels: Labels, body: StreamedBody) -> None:
    """Record duration and size of a streamed answer at its end."""
    metrics.duration.observe(monotonic() - request.received, labels)
    metrics.sizes.observe(body.size, labels[:1] + labels[2:])
