"""Has requests judged by all that was acknowledged before they came, by whichever process or server did so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from steersman.endpoints.request import Filter, Handler, Request
from steersman.machinery.errors.status import too_many_requests
from steersman.net.message import Response
from steersman.storage.interface import StorageUnavailable

_PROBES: Final = ("/healthz", "/livez", "/readyz", "/metrics")
"""Beginnings of paths that are answered whatever becomes of storage."""

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Arrival:
    """The wait of requests, before they are judged, for what others have acknowledged.

    `arrived` returns the newest revision of now, once everything up to there has been told of, 0 for one that is not
    known. `behind` returns what completes once requests are judged by everything up to a revision, None if they are.
    `may_write` returns what completes once others know that this process writes, None if they do: until then no write
    of a request is begun. With `costs` a question is asked for it: then reads that take what is old
    (`resourceVersion=0`) wait only before they are refused.
    """

    def __init__(
        self,
        arrived: Callable[[], Awaitable[int] | int],
        behind: Callable[[int], Awaitable[None] | None],
        *,
        costs: bool,
        may_write: Callable[[], Awaitable[None] | None] = lambda: None,
    ) -> None:
        self._arrived = arrived
        self._behind = behind
        self._costs = costs
        self._may_write = may_write

    def is_spared(self, request: Request) -> bool:
        """Return True for a request that does not wait unless it would be refused."""
        if request.info.path.startswith(_PROBES):
            return True
        return self._costs and request.method == "GET" and request.parameter("resourceVersion") == "0"

    async def wait(self, request: Request) -> None:
        """Return once this process knows of everything that is committed now, and may write if that is asked for.

        Raises StatusError 429 where it cannot be made known that this process writes.
        """
        if request.method not in _READS:
            joining = self._may_write()
            if joining is not None:
                await _joined(joining)
        found = self._arrived()
        request.newest = newest = found if isinstance(found, int) else await found
        waiting = self._behind(newest)
        if waiting is not None:
            await waiting


async def _joined(joining: Awaitable[None]) -> None:
    try:
        await joining
    except StorageUnavailable as error:
        raise too_many_requests(f"storage is not ready for writes: {error}", 1) from error


def with_arrival(arrival: Arrival) -> Filter:
    """Let a request wait, before it is judged, until this process knows of everything that is committed."""

    async def waiting(request: Request, next_: Handler) -> Response:
        if not arrival.is_spared(request):
            await arrival.wait(request)
        return await next_(request)

    return waiting
