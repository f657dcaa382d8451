"""Authorization of requests (WithAuthorization)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Final

from steersman.audit.latencies import AUTHORIZATION
from steersman.audit.trail import Trail
from steersman.authorization.attributes import LONGEST_SELECTOR, Attributes, read_selectors
from steersman.authorization.forbidden import forbidden_error, internal_error_text
from steersman.authorization.interface import Authorizer, Decision, Verdict
from steersman.endpoints.filters.consistency import ConsistencyWait
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import SHORT_QUERY, Filter, Handler, Request
from steersman.endpoints.responses import NOSNIFF, error_response, text_response
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response
from steersman.work.offloading import offload_if

logger = logging.getLogger(__name__)

_DECISION: Final = "authorization.k8s.io/decision"
_REASON: Final = "authorization.k8s.io/reason"
_ALLOW: Final = Decision.ALLOW
"""A module constant, since reading an enum member costs more than the comparison."""

_LONG: Final = 16 << 10
"""Characters of a path and a user's name above which the text of a refusal, which quotes them, is built in a worker
thread.
"""


def with_authorization(
    authorizer: Authorizer, metrics: RequestMetrics, arrival: ConsistencyWait | None = None
) -> Filter:
    """Return a filter that answers 403 to requests that are not allowed, and 500 if authorization fails.

    With `arrival`, a request that has not waited for current roles waits before it is refused, and is authorized again.
    """

    allowed: list[float] | None = None
    """Counter of allowed requests, fetched on first use."""

    def authorization(request: Request, next_: Handler) -> Awaitable[Response]:
        attributes = request_attributes(request)
        if request.audit is not None:
            return authorize(request, next_, attributes, monotonic(), authorizer.authorize(attributes))
        verdict = authorizer.authorize(attributes)
        if (
            isinstance(verdict, Verdict)
            and verdict.decision is _ALLOW
            and allowed is not None
            and len(request.http.query) < SHORT_QUERY
        ):
            request.verdict = verdict
            allowed[0] += 1
            return next_(request)
        return authorize(request, next_, attributes, 0.0, verdict)

    async def authorize(
        request: Request,
        next_: Handler,
        attributes: Attributes,
        began: float,
        verdict: Verdict | Awaitable[Verdict],
    ) -> Response:
        nonlocal allowed
        trail = request.audit
        if not isinstance(verdict, Verdict):
            verdict = await verdict
        if verdict.decision is not _ALLOW and arrival is not None and not request.newest:
            await arrival.wait(request)
            again = authorizer.authorize(attributes)
            verdict = again if isinstance(again, Verdict) else await again
        if trail is not None:
            trail.add_latency(AUTHORIZATION, monotonic() - began)
        request.verdict = verdict
        if verdict.decision is _ALLOW:
            if trail is not None:
                _record(trail, "allow", verdict.reason)
            if allowed is None:
                allowed = metrics.authorization_attempts.series(("allowed",))
            allowed[0] += 1
            if len(request.http.query) >= SHORT_QUERY:
                await request.read_query()
            return await next_(request)
        request.refused = True
        if verdict.error:
            if trail is not None:
                trail.annotate(_REASON, "internal error")
            metrics.authorization_attempts.inc(("error",))
            logger.error("authorization of %s %s failed: %s", request.method, request.path, verdict.error)
            return text_response(500, internal_error_text(request.path, verdict.error) + "\n")
        if trail is not None:
            _record(trail, "forbid", verdict.reason)
        metrics.authorization_attempts.inc(("denied" if verdict.denied else "no-opinion",))
        is_long = len(request.path) + len(request.user.name) > _LONG
        return await offload_if(is_long, _refusal, request, attributes, verdict.reason)

    return authorization


def _refusal(request: Request, attributes: Attributes, reason: str) -> Response:
    response = error_response(request, forbidden_error(attributes, reason))
    response.headers.append(NOSNIFF)
    return response


def _record(trail: Trail, decision: str, reason: str) -> None:
    trail.annotate(_DECISION, decision)
    trail.annotate(_REASON, reason)


def request_attributes(request: Request) -> Attributes:
    """Return the authorization attributes of a request."""
    info = request.info
    if not info.unread_query:
        return Attributes(request.user, info.action, None if info.resource_request else info.path)
    return Attributes(
        request.user, info.authorized_action, limits=lambda: read_selectors(*info.selectors, longest=LONGEST_SELECTOR)
    )
