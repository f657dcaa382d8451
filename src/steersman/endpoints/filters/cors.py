"""Cross-origin requests of browsers from allowed origins (WithCORS)."""

from __future__ import annotations

from typing import Any

from steersman.endpoints.request import Filter, Handler, Request
from steersman.net.message import Response

_METHODS = "POST, GET, OPTIONS, PUT, DELETE, PATCH"
_REQUEST_HEADERS = (
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
)
_EXPOSED = "Date"
_LONGEST = 1024
"""Limit of characters of an origin: scheme, host, port."""


def with_cors(patterns: tuple[str, ...]) -> Filter:
    """Return a filter that answers preflight requests and adds CORS headers for origins that match a pattern (RE2).

    Raises cel.regular.PatternError.
    """
    from steersman.cel.regular import compiled_at_once  # few servers need it

    allowed: tuple[Any, ...] = tuple(map(compiled_at_once, patterns))

    async def cors(request: Request, next_: Handler) -> Response:
        origin = request.headers.get("origin", "")
        if not origin or len(origin) > _LONGEST or not any(pattern.search(origin) for pattern in allowed):
            return await next_(request)
        headers = [
            ("access-control-allow-origin", origin),
            ("access-control-allow-methods", _METHODS),
            ("access-control-allow-headers", _REQUEST_HEADERS),
            ("access-control-expose-headers", _EXPOSED),
            ("access-control-allow-credentials", "true"),
        ]
        if request.method == "OPTIONS":
            return Response(204, headers)
        response = await next_(request)
        response.headers.extend(headers)
        return response

    return cors
