"""Consistency with other processes and servers: requests see every write acknowledged before they arrived."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from steersman.endpoints.request import Filter, Handler, Request
from steersman.machinery.errors.status import too_many_requests
from steersman.net.message import Response
from steersman.storage.interface import StorageUnavailable

_PROBES: Final = ("/healthz", "/livez", "/readyz", "/metrics")
"""Prefixes of paths that are answered regardless of the storage."""

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class ConsistencyWait:
    """The wait of requests, before authorization, for writes that others have acknowledged.

    - `arrived` returns the newest revision now, once all subscribers have been notified up to it; 0 if it is unknown.
    - `behind` returns an awaitable that completes once decisions about requests include a revision, None if they do.
    - `may_write` returns an awaitable that completes once others know that this process writes, None if they do. No
      write begins before that.
    - `costs` is True if `arrived` sends a request to storage; reads with `resourceVersion=0` then wait only before a
      refusal.
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
        """Return True for a request that waits only if it would be refused."""
        if request.info.path.startswith(_PROBES):
            return True
        return self._costs and request.method == "GET" and request.parameter("resourceVersion") == "0"

    async def wait(self, request: Request) -> None:
        """Wait until this process has processed every commit up to now and, for a write, may write.

        Raises StatusError 429 if other servers cannot be told that this process writes.
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


def with_consistency_wait(arrival: ConsistencyWait) -> Filter:
    """Return a filter by which requests wait, before authorization, for all commits up to now."""

    async def waiting(request: Request, next_: Handler) -> Response:
        if not arrival.is_spared(request):
            await arrival.wait(request)
        return await next_(request)

    return waiting
