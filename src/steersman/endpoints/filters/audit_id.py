"""Gives every request an id that answers, logs and other servers share (WithAuditInit)."""

from __future__ import annotations

from itertools import count

from steersman.audit.backends.backend import Written
from steersman.endpoints.request import Filter, Handler, Request
from steersman.machinery.identity.names import new_uid
from steersman.net.message import Response


def with_audit_id() -> Filter:
    """Takes the first `Audit-ID` of the client, or makes one, and sends it with the answer.

    Ids are UUIDs: the server's random first part, and a number for each request.
    """
    prefix = new_uid()[:24]
    numbers = count(1)

    async def audit_id(request: Request, next_: Handler) -> Response:
        headers = request.headers
        given = headers.get_all("audit-id") if "audit-id" in headers else ()
        request.audit_id = value = (given and given[0]) or f"{prefix}{next(numbers):012x}"
        response = await next_(request)
        response.headers.append(("audit-id", value))
        recorded = request.recorded
        if recorded is not None:
            if isinstance(recorded, Written) and response.upgrade is None and isinstance(response.body, bytes | list):
                response.after = recorded.then  # so that nothing waits along
            else:
                await recorded
        return response

    return audit_id
