"""Has requests judged by all that was acknowledged before they came, by whichever process or server did so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from steersman.endpoints.request import Filter, Handler, Request
from steersman.net.message import Response

_PROBES: Final = ("/healthz", "/livez", "/readyz", "/metrics")
"""Beginnings of paths that are answered whatever becomes of storage."""

Arrived = Callable[[], Awaitable[int] | int]
"""Returns the newest revision of now, once everything up to there has been told of; 0 for one that is not known."""


def with_arrival(arrived: Arrived) -> Filter:
    """Let a request wait, before it is judged, until this process knows of everything that is committed."""

    async def arrival(request: Request, next_: Handler) -> Response:
        if not request.info.path.startswith(_PROBES):
            newest = arrived()
            request.newest = newest if isinstance(newest, int) else await newest
        return await next_(request)

    return arrival
