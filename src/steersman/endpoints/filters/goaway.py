"""Occasional GOAWAY, which spreads long-lived HTTP/2 clients over servers (WithProbabilisticGoaway)."""

from __future__ import annotations

import random

from steersman.endpoints.request import Filter, Handler, Request
from steersman.net.message import Response


def with_probabilistic_goaway(chance: float) -> Filter:
    """Return a filter that gracefully closes an HTTP/2 connection after a request, with this probability (0 to
    0.02).
    """

    async def goaway(request: Request, next_: Handler) -> Response:
        response = await next_(request)
        if request.http.version == "2" and random.random() < chance:
            response.close = True
        return response

    return goaway
