"""Counts watches so that a shutdown can end them gently (WithWatchTerminationDuringShutdown)."""

from __future__ import annotations

from collections.abc import Callable

from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.machinery.errors.status import StatusError
from steersman.net.message import Response


def with_watch_termination(shutting_down: Callable[[], bool]) -> Filter:
    """503 for a new watch once the server is going down; those open are ended by it."""

    async def watch_termination(request: Request, next_: Handler) -> Response:
        if request.info.action.verb == "watch" and shutting_down():
            error = StatusError(503, "ServiceUnavailable", "apiserver is shutting down", retry_after=1)
            return error_response(request, error)
        return await next_(request)

    return watch_termination
