"""The outermost filter: sets the id, time and request info of a request, and answers for failed handlers.

Upstream has a filter for each task: WithAuditInit, WithPanicRecovery, WithMuxAndDiscoveryComplete,
WithRequestReceivedTimestamp, WithRequestInfo.
"""

from __future__ import annotations

import logging
from itertools import count
from typing import Final, Protocol

from steersman.audit.backends.backend import RecordResult
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
"""Limit of characters of a method and target for cached request infos: a client chooses both, up to the size of a
head.
"""
_LONG: Final = 64 << 10
"""Characters of a path and query above which parsing takes more than a millisecond."""
_PANIC: Final = b"This request caused apiserver to panic. Look in the logs for details.\n"
_TOO_EARLY: Final = "the request has been made before all known HTTP paths have been installed, please try again"


class Installation(Protocol):
    """A server whose paths may not all be installed yet."""

    serving: bool
    """True once all paths are installed."""


def with_reception(server: Installation) -> Filter:
    """Return a filter that sets `request.received`, `audit_id` and `info`.

    It answers 500 to an unintelligible path and after an uncaught error, and 503 in place of 404 to a request that
    arrived before all paths were installed. The id is the client's first `Audit-ID`, or a new one: a random prefix of
    this server and a counter. It is sent with the answer.
    """
    prefix = new_uid()[:24]
    numbers = count(1)

    async def reception(request: Request, next_: Handler) -> Response:
        request.received = monotonic()
        headers, http = request.headers, request.http
        audit_ids = headers.get_all("audit-id") if "audit-id" in headers else ()
        request.audit_id = audit_id = (audit_ids and audit_ids[0]) or f"{prefix}{next(numbers):012x}"
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
            if (
                isinstance(recorded, RecordResult)
                and response.upgrade is None
                and isinstance(response.body, bytes | list)
            ):
                response.after = recorded.add_done_callback  # so that this task does not wait for the record
            else:
                await recorded
        return response

    return reception


async def _info_of_long(request: Request) -> RequestInfo:
    """Return the request info of a long target, parsed in a worker thread. Raises BadRequestInfo."""
    http = request.http
    return await offload_if(len(http.path) + len(http.query) > _LONG, _read_long, http.method, http.path, http.query)


def _read_long(method: str, path: str, query: str) -> RequestInfo:
    """Return the request info with the query's selectors parsed. Raises BadRequestInfo."""
    info = read_request_info(method, path, query)
    if info.unread_query:
        _ = info.authorized_action, info.selectors
    return info


def _refusal(request: Request, why: str) -> Response:
    http = request.http
    target = f"{http.path}?{http.query}" if http.query else http.path
    return text_response(500, internal_error_text(target, f"failed to create RequestInfo: {why}, {target}") + "\n")


def panicked(why: str) -> Response:
    """Return the answer for a request on which upstream panics; this server detects the case."""
    logger.error("apiserver panic'd: %s", why)
    return _panic()


def _panic() -> Response:
    headers = [("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff")]
    return Response(500, headers, _PANIC)
