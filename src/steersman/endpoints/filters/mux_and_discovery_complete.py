"""Tells "not there" from "not there yet" (WithMuxAndDiscoveryComplete)."""

from __future__ import annotations

from collections.abc import Callable

from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.machinery.errors.status import StatusError
from steersman.net.message import Response


def with_mux_and_discovery_complete(complete: Callable[[], bool]) -> Filter:
    """503 instead of 404 for a request that came before every path was installed."""

    async def mux_and_discovery_complete(request: Request, next_: Handler) -> Response:
        if complete():
            return await next_(request)
        response = await next_(request)
        if response.status != 404:
            return response
        message = "the request has been made before all known HTTP paths have been installed, please try again"
        return error_response(request, StatusError(503, "ServiceUnavailable", message, retry_after=5))

    return mux_and_discovery_complete
