"""Strict-Transport-Security (WithHSTS)."""

from __future__ import annotations

from steersman.endpoints.request import Filter, Handler, Request
from steersman.machinery.go.strings import trim_space
from steersman.net.message import Response


def with_hsts(directives: str) -> Filter:
    """Return a filter that sends `directives`, e.g. "max-age=31536000,includeSubDomains", with every answer."""
    value = "; ".join(trim_space(part) for part in directives.split(","))

    async def hsts(request: Request, next_: Handler) -> Response:
        response = await next_(request)
        response.headers.append(("strict-transport-security", value))
        return response

    return hsts
