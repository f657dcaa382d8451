"""Gives every request an id that answers, logs and other servers share (WithAuditInit)."""

from __future__ import annotations

import random

from steersman.endpoints.request import Handler, Request
from steersman.net.message import Response

_LONGEST = 64


async def with_audit_id(request: Request, next_: Handler) -> Response:
    """Takes the client's `Audit-ID`, or makes one, and sends it with the answer."""
    given = request.headers.get("audit-id", "")
    request.audit_id = audit_id = given[:_LONGEST] if given else _new_id()
    response = await next_(request)
    response.headers.append(("audit-id", audit_id))
    return response


def _new_id() -> str:
    """A random UUID (version 4). It only has to be unique, so it need not come from the kernel."""
    text = f"{random.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"
