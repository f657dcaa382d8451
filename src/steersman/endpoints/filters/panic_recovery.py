"""The outermost net for programming errors (WithPanicRecovery)."""

from __future__ import annotations

import logging

from steersman.endpoints.request import Handler, Request
from steersman.net.message import Response

logger = logging.getLogger(__name__)

_BODY = b"This request caused apiserver to panic. Look in the logs for details.\n"


async def with_panic_recovery(request: Request, next_: Handler) -> Response:
    """Logs what nobody caught and answers 500 instead of dropping the connection."""
    try:
        return await next_(request)
    except Exception:
        logger.exception("apiserver panic'd on %s %s", request.method, request.path)
        return _answer()


def panicked(why: str) -> Response:
    """The same answer for what upstream panics on and this server sees coming."""
    logger.error("apiserver panic'd: %s", why)
    return _answer()


def _answer() -> Response:
    headers = [("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff")]
    return Response(500, headers, _BODY)
