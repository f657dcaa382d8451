"""Has requests judged by all that was acknowledged before they came, by whichever process or server did so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from steersman.endpoints.request import Filter, Handler, Request
from steersman.net.message import Response

_PROBES: Final = ("/healthz", "/livez", "/readyz", "/metrics")
"""Beginnings of paths that are answered whatever becomes of storage."""


class Arrival:
    """The wait of requests, before they are judged, for what others have acknowledged.

    `arrived` returns the newest revision of now, once everything up to there has been told of, 0 for one that is not
    known. `behind` returns what completes once requests are judged by everything up to a revision, None if they are.
    With `costs` a question is asked for it: then reads that take what is old (`resourceVersion=0`) wait only before
    they are refused.
    """

    def __init__(
        self,
        arrived: Callable[[], Awaitable[int] | int],
        behind: Callable[[int], Awaitable[None] | None],
        *,
        costs: bool,
    ) -> None:
        self._arrived = arrived
        self._behind = behind
        self._costs = costs

    def is_spared(self, request: Request) -> bool:
        """Return True for a request that does not wait unless it would be refused."""
        if request.info.path.startswith(_PROBES):
            return True
        return self._costs and request.method == "GET" and request.parameter("resourceVersion") == "0"

    async def wait(self, request: Request) -> None:
        """Return once this process knows of everything that is committed now."""
        found = self._arrived()
        request.newest = newest = found if isinstance(found, int) else await found
        waiting = self._behind(newest)
        if waiting is not None:
            await waiting


def with_arrival(arrival: Arrival) -> Filter:
    """Let a request wait, before it is judged, until this process knows of everything that is committed."""

    async def waiting(request: Request, next_: Handler) -> Response:
        if not arrival.is_spared(request):
            await arrival.wait(request)
        return await next_(request)

    return waiting
