"""Refusal of requests once the server no longer accepts them (WithRetryAfter)."""

from __future__ import annotations

from collections.abc import Callable

from steersman.endpoints.request import Filter, Handler, Request
from steersman.net.message import Response

_EXEMPT = frozenset({"/readyz", "/livez", "/healthz", "/metrics"})


def with_retry_after(not_accepting: Callable[[], bool]) -> Filter:
    """Return a filter that answers 429 with `Retry-After: 5` and closes the connection while `not_accepting()` is True.

    Probes are still answered.
    """

    async def retry_after(request: Request, next_: Handler) -> Response:
        if not not_accepting() or request.info.path in _EXEMPT:
            return await next_(request)
        if request.headers.get("user-agent", "").startswith("kube-apiserver/"):
            return await next_(request)
        headers = [("retry-after", "5"), ("content-type", "text/plain; charset=utf-8")]
        return Response(429, headers, b"The apiserver is shutting down, please try again later.\n", close=True)

    return retry_after
