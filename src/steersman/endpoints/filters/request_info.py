"""Reads what the request is about (WithRequestInfo)."""

from __future__ import annotations

from steersman.authorization.forbidden import internal_error_text
from steersman.endpoints.request import Handler, Request
from steersman.endpoints.request_info import BadRequestInfo, read_request_info, request_info
from steersman.endpoints.responses import text_response
from steersman.net.message import Response

_SHORT = 512
"""Characters of a method and target that are kept; a client chooses both, and each may be as long as a head."""


async def with_request_info(request: Request, next_: Handler) -> Response:
    """Sets `request.info`; 500 if the path cannot be understood."""
    http = request.http
    try:
        if len(http.method) + len(http.path) + len(http.query) < _SHORT:
            request.info = request_info(http.method, http.path, http.query)
        else:
            request.info = read_request_info(http.method, http.path, http.query)
    except BadRequestInfo as error:
        target = f"{http.path}?{http.query}" if http.query else http.path
        return text_response(
            500, internal_error_text(target, f"failed to create RequestInfo: {error}, {target}") + "\n"
        )
    return await next_(request)
