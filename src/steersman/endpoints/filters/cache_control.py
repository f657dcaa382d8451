"""Keeps answers out of caches (WithCacheControl)."""

from __future__ import annotations

from steersman.endpoints.request import Handler, Request
from steersman.net.message import Response

_HEADER = ("cache-control", "no-cache, private")


async def with_cache_control(request: Request, next_: Handler) -> Response:
    """Sends `Cache-Control: no-cache, private` unless the handler chose another."""
    response = await next_(request)
    for name, _ in response.headers:
        if name == "cache-control":
            return response
    response.headers.append(_HEADER)
    return response
