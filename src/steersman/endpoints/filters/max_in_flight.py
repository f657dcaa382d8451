"""Limit of concurrent requests (WithMaxInFlightLimit)."""

from __future__ import annotations

from steersman.authentication.user import SYSTEM_MASTERS
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import NOSNIFF, TEXT_TYPE
from steersman.endpoints.streamed import ends_at_once
from steersman.net.message import Response

_MUTATING = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_TOO_MANY = b"Too many requests, please try again later.\n"


def with_max_in_flight(reading: int, mutating: int, metrics: RequestMetrics) -> Filter:
    """Return a filter that answers 429 above `reading` read-only or `mutating` writing requests at a time (0: no
    limit).

    Long-running requests do not count, and administrators always get through. A large answer counts until the client
    has received it, a small answer or a refusal until it is passed to the connection.
    """
    limits = {False: reading, True: mutating}
    running = {False: 0, True: 0}
    metrics.count_inflight(lambda: (running[False], running[True]))

    def leave_reading() -> None:
        running[False] -= 1

    def leave_mutating() -> None:
        running[True] -= 1

    async def max_in_flight(request: Request, next_: Handler) -> Response:
        info = request.info
        if info.long_running:
            return await next_(request)
        verb = info.action.verb
        kind = verb in _MUTATING or (not info.resource_request and verb not in ("get", "head"))
        limit = limits[kind]
        if limit and running[kind] >= limit and SYSTEM_MASTERS not in request.user.groups:
            return Response(429, [TEXT_TYPE, NOSNIFF, ("retry-after", "1")], _TOO_MANY)
        running[kind] += 1
        try:
            response = await next_(request)
        except BaseException:
            running[kind] -= 1
            raise
        if ends_at_once(request, response):
            running[kind] -= 1
        else:
            request.http.on_request_end = leave_mutating if kind else leave_reading
        return response

    return max_in_flight
