"""The access log (WithHTTPLogging)."""

from __future__ import annotations

import logging

from steersman.endpoints.request import Handler, Request
from steersman.endpoints.streamed import when_over
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response

_LONGEST_ID = 64
"""Characters that are logged of an id that a client has chosen."""
logger = logging.getLogger("steersman.http")


async def with_http_logging(request: Request, next_: Handler) -> Response:
    """Logs one line at level INFO when an answer is over; headers and bodies never get there, they may hold secrets."""
    response = await next_(request)

    def log() -> None:
        logger.info(
            'HTTP verb="%s" URI="%s" latency="%.3fms" userAgent="%s" audit-ID="%s" srcIP="%s" resp=%d',
            request.method, request.path, (monotonic() - request.received) * 1000,
            request.headers.get("user-agent", ""), request.audit_id[:_LONGEST_ID], request.http.peer.host,
            response.status,
        )  # fmt: skip

    when_over(response, log)
    return response
