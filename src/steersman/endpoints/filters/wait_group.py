"""Counts requests so that a shutdown can wait for them (WithWaitGroup)."""

from __future__ import annotations

import asyncio

from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.endpoints.streamed import when_over
from steersman.machinery.errors.status import StatusError
from steersman.net.message import Response


class WaitGroup:
    """Short requests in flight. Once `closed`, no more are let in."""

    def __init__(self) -> None:
        self.running = 0
        self.closed = False
        self._idle = asyncio.Event()

    def leave(self) -> None:
        """One less."""
        self.running -= 1
        if self.closed and not self.running:
            self._idle.set()

    async def close(self) -> None:
        """Lets no more in and returns once none is left."""
        self.closed = True
        if self.running:
            await self._idle.wait()


def with_wait_group(group: WaitGroup) -> Filter:
    """Counts a short request until its answer is over; 503 when the server no longer takes any."""

    async def wait_group(request: Request, next_: Handler) -> Response:
        if request.info.long_running:
            return await next_(request)
        if group.closed:
            error = StatusError(503, "ServiceUnavailable", "apiserver is shutting down", retry_after=1)
            return error_response(request, error)
        group.running += 1
        try:
            response = await next_(request)
        except BaseException:
            group.leave()
            raise
        when_over(response, group.leave)
        return response

    return wait_group
