"""The outermost filter: a request is given its id, its time and what it is about, and a failing server answers.

Upstream has a filter for each: WithAuditInit, WithPanicRecovery, WithMuxAndDiscoveryComplete,
WithRequestReceivedTimestamp, WithRequestInfo.
"""

from __future__ import annotations

import logging
from itertools import count
from typing import Final, Protocol

from steersman.audit.backends.backend import Written
from steersman.authorization.forbidden import internal_error_text
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.request_info import BadRequestInfo, RequestInfo, read_request_info, request_info
from steersman.endpoints.responses import error_response, text_response
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.names import new_uid
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response
from steersman.work.offloading import offload_if

logger = logging.getLogger(__name__)

_SHORT: Final = 512
"""Characters of a method and target that are kept; a client chooses both, and each may be as long as a head."""
_LONG: Final = 64 << 10
"""Characters of a path and query that take more than a millisecond to read."""
_PANIC: Final = b"This request caused apiserver to panic. Look in the logs for details.\n"
_TOO_EARLY: Final = "the request has been made before all known HTTP paths have been installed, please try again"


class Installation(Protocol):
    """A server whose paths may not all be there yet."""

    serving: bool
    """True once all paths are there."""


def with_reception(server: Installation) -> Filter:
    """Sets `request.received`, `audit_id` and `info`; 500 if the path cannot be understood, or where nobody has caught
    an error.

    The id is the first `Audit-ID` of the client, or one that is made: the server's random first part, and a number for
    each request. It is sent with the answer. 503 instead of 404 for a request that came before every path was installed.
    """
    prefix = new_uid()[:24]
    numbers = count(1)

    async def reception(request: Request, next_: Handler) -> Response:
        request.received = monotonic()
        headers, http = request.headers, request.http
        given = headers.get_all("audit-id") if "audit-id" in headers else ()
        request.audit_id = audit_id = (given and given[0]) or f"{prefix}{next(numbers):012x}"
        serving = server.serving
        try:
            try:
                is_short = len(http.method) + len(http.path) + len(http.query) < _SHORT
                request.info = (
                    request_info(http.method, http.path, http.query) if is_short else await _info_of_long(request)
                )
            except BadRequestInfo as error:
                response = await offload_if(request.has_long_target, _refusal, request, str(error))
            else:
                response = await next_(request)
        except Exception:
            logger.exception("apiserver panic'd on %s %s", request.method, request.path)
            response = _panic()
        if response.status == 404 and not serving:
            response = error_response(request, StatusError(503, "ServiceUnavailable", _TOO_EARLY, retry_after=5))
        response.headers.append(("audit-id", audit_id))
        recorded = request.recorded
        if recorded is not None:
            if isinstance(recorded, Written) and response.upgrade is None and isinstance(response.body, bytes | list):
                response.after = recorded.then  # so that nothing waits along
            else:
                await recorded
        return response

    return reception


async def _info_of_long(request: Request) -> RequestInfo:
    """Return what a request of a long target is about. Raises BadRequestInfo."""
    http = request.http
    return await offload_if(len(http.path) + len(http.query) > _LONG, _read_long, http.method, http.path, http.query)


def _read_long(method: str, path: str, query: str) -> RequestInfo:
    """Return what the request is about, with the selectors of its query read already. Raises BadRequestInfo."""
    info = read_request_info(method, path, query)
    if info.unread_query:
        _ = info.judged, info.selectors
    return info


def _refusal(request: Request, why: str) -> Response:
    http = request.http
    target = f"{http.path}?{http.query}" if http.query else http.path
    return text_response(500, internal_error_text(target, f"failed to create RequestInfo: {why}, {target}") + "\n")


def panicked(why: str) -> Response:
    """Return the answer to what upstream panics on and this server sees coming."""
    logger.error("apiserver panic'd: %s", why)
    return _panic()


def _panic() -> Response:
    headers = [("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff")]
    return Response(500, headers, _PANIC)
