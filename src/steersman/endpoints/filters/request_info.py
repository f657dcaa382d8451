"""Reads what the request is about (WithRequestInfo)."""

from __future__ import annotations

from steersman.endpoints.request import Handler, Request
from steersman.endpoints.request_info import BadRequestInfo, read_request_info, request_info
from steersman.net.message import Response

_SHORT = 512
"""Longer targets are not worth keeping."""


async def with_request_info(request: Request, next_: Handler) -> Response:
    """Sets `request.info`; 500 if the path cannot be understood."""
    http = request.http
    try:
        if len(http.path) + len(http.query) < _SHORT:
            request.info = request_info(http.method, http.path, http.query)
        else:
            request.info = read_request_info(http.method, http.path, http.query)
    except BadRequestInfo as error:
        headers = [("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff")]
        target = _target(request)
        text = f'Internal Server Error: "{_escaped(target)}": failed to create RequestInfo: {error}, {target}\n'
        return Response(500, headers, text.encode())
    return await next_(request)


def _target(request: Request) -> str:
    return f"{request.path}?{request.http.query}" if request.http.query else request.path


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")
