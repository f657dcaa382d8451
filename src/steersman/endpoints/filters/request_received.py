"""Remembers when a request came (WithRequestReceivedTimestamp)."""

from __future__ import annotations

from steersman.endpoints.request import Handler, Request
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response


async def with_request_received(request: Request, next_: Handler) -> Response:
    """Sets `request.received`, in seconds of the monotonic clock."""
    request.received = monotonic()
    return await next_(request)
