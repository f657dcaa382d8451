"""Reads what the request is about (WithRequestInfo)."""

from __future__ import annotations

from typing import Final

from steersman.authorization.forbidden import internal_error_text
from steersman.endpoints.request import Handler, Request
from steersman.endpoints.request_info import BadRequestInfo, RequestInfo, read_request_info, request_info
from steersman.endpoints.responses import text_response
from steersman.net.message import Response
from steersman.work.offloading import offload_if

_SHORT: Final = 512
"""Characters of a method and target that are kept; a client chooses both, and each may be as long as a head."""
_LONG: Final = 64 << 10
"""Characters of a path and query that take more than a millisecond to read."""


async def with_request_info(request: Request, next_: Handler) -> Response:
    """Sets `request.info`; 500 if the path cannot be understood."""
    http = request.http
    try:
        if len(http.method) + len(http.path) + len(http.query) < _SHORT:
            request.info = request_info(http.method, http.path, http.query)
        else:
            is_long = len(http.path) + len(http.query) > _LONG
            request.info = await offload_if(is_long, _info_of_long, http.method, http.path, http.query)
    except BadRequestInfo as error:
        return await offload_if(request.has_long_target, _refusal, request, str(error))
    return await next_(request)


def _info_of_long(method: str, path: str, query: str) -> RequestInfo:
    """Return what the request is about, with the selectors of its query read already. Raises BadRequestInfo."""
    info = read_request_info(method, path, query)
    if info.may_have_selectors:
        _ = info.judged, info.selectors
    return info


def _refusal(request: Request, why: str) -> Response:
    http = request.http
    target = f"{http.path}?{http.query}" if http.query else http.path
    return text_response(500, internal_error_text(target, f"failed to create RequestInfo: {why}, {target}") + "\n")
