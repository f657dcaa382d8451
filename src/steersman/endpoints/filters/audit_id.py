"""Gives every request an id that answers, logs and other servers share (WithAuditInit)."""

from __future__ import annotations

from steersman.endpoints.request import Handler, Request
from steersman.machinery.names import new_uid
from steersman.net.message import Response

_LONGEST = 64


async def with_audit_id(request: Request, next_: Handler) -> Response:
    """Takes the client's `Audit-ID`, or makes one, and sends it with the answer."""
    given = request.headers.get("audit-id", "")
    request.audit_id = audit_id = given[:_LONGEST] if given else new_uid()
    response = await next_(request)
    response.headers.append(("audit-id", audit_id))
    return response
