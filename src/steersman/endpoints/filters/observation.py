"""Notification of an observer in this process about each answered request."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from steersman.endpoints.request import Filter, Handler, Request
from steersman.machinery.errors.status import StatusError
from steersman.net.message import Response

Observe = Callable[[Request, int, float], None]
"""Callback with a request, the status code of its answer, and the seconds until the answer began. It must not change
the request, wait or raise.
"""


def with_observation(observe: Observe) -> Filter:
    """Return a filter that calls `observe` when an answer begins; for a watch, when it is opened."""

    async def observation(request: Request, next_: Handler) -> Response:
        began = perf_counter()
        try:
            response = await next_(request)
        except StatusError as error:
            observe(request, error.code, perf_counter() - began)
            raise
        observe(request, response.status, perf_counter() - began)
        return response

    return observation
