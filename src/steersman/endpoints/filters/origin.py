"""Origins of writes: who asked for them, for a storage that keeps this with each write."""

from __future__ import annotations

from steersman.endpoints.request import Handler, Request
from steersman.net.message import Response
from steersman.storage.origins import bound_origin, origin_of


async def with_origin(request: Request, next_: Handler) -> Response:
    """Bind verb, user, user agent and audit ID of a request that may write to the writes that it causes."""
    if request.method in ("GET", "HEAD"):
        return await next_(request)
    action = request.info.action
    agent = request.headers.get("user-agent", "")
    origin = origin_of(action.verb, action.subresource, request.user.name, agent, request.audit_id)
    with bound_origin(origin):
        return await next_(request)
