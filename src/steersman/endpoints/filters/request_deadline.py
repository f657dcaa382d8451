"""How long a request may take (WithRequestDeadline)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steersman.endpoints.filters.audit import refused
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import bad_request
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.message import Response

if TYPE_CHECKING:
    from steersman.audit.trail import Auditor

_SECOND = 1_000_000_000
"""In nanoseconds."""
_LONGEST: Final = 1_000
"""Characters of a timeout. Go takes any number of terms; the usual ones have one or two."""


def with_request_deadline(longest: float, auditor: Auditor | None = None) -> Filter:
    """Sets `request.deadline` from `?timeout=`, at most `longest` seconds; 400 if it cannot be read."""

    async def request_deadline(request: Request, next_: Handler) -> Response:
        if request.info.long_running:
            return await next_(request)
        seconds = longest
        text = request.parameter("timeout")
        if text:
            try:
                asked = _duration(text) / _SECOND
            except DurationError as error:
                reason = f"invalid timeout specified in the request URL - {error}"
                refusal = bad_request(reason)
                return refused(auditor, request, reason, lambda: error_response(request, refusal))
            if 0 < asked < longest:
                seconds = asked
        request.deadline = request.received + seconds
        return await next_(request)

    return request_deadline


def _duration(text: str) -> int:
    """Nanoseconds. Raises DurationError, also for one that is long: nobody has been asked who sent it."""
    if len(text) > _LONGEST:
        raise DurationError(f"time: invalid duration {quote(text)}")
    return parse_duration(text)
