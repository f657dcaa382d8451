"""Reads what the request is about (WithRequestInfo)."""

from __future__ import annotations

from steersman.endpoints.request import Handler, Request
from steersman.endpoints.request_info import BadRequestInfo, request_info
from steersman.net.message import Response


async def with_request_info(request: Request, next_: Handler) -> Response:
    """Sets `request.info`; 500 if the path cannot be understood."""
    try:
        request.info = request_info(request.method, request.path, request.query)
    except BadRequestInfo as error:
        headers = [("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff")]
        return Response(500, headers, f"Internal Server Error: {_quoted(request)}: {error}\n".encode())
    return await next_(request)


def _quoted(request: Request) -> str:
    target = f"{request.path}?{request.http.query}" if request.http.query else request.path
    escaped = target.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")
    return f'"{escaped}"'
