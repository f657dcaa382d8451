"""Subresources that are not about the object's JSON (log, exec, proxy): the whole request is handed over."""

from __future__ import annotations

from steersman.admission.interface import CONNECT
from steersman.endpoints.admit import attributes
from steersman.endpoints.connect_options import ask_for, read_options
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.errors.status import bad_request
from steersman.net.message import Response
from steersman.rest.bound import Connect
from steersman.rest.context import Context
from steersman.rest.resource import Subresource
from steersman.work.offloading import offload_if


async def connect(scope: Scope, subresource: Subresource, connecting: Connect, request: Request) -> Response:
    """Whatever `connecting`, the subresource's own, answers.

    Raises StatusError 400 on a dry run, and what admission refuses.
    """
    ctx = request.context()
    if subresource.name != "log":  # to read a log is a GET for upstream, and no connection
        if "dryRun" in request.query:
            raise bad_request("dryRun is not supported")
        if scope.shared.admission.handles(CONNECT):
            await _admit(scope, subresource, request, ctx)
    from steersman.endpoints.proxy.passing import ended_with  # slow to load, and not every server has such subresources

    answering = connecting(ctx, request.action.name, request)
    return await ended_with(scope.shared.watches, answering)


async def _admit(scope: Scope, subresource: Subresource, request: Request, ctx: Context) -> None:
    """Raises what admission refuses."""
    kind = subresource.kind
    assert kind is not None
    record = attributes(scope, request, ctx, CONNECT)
    record.kind = kind.gvk
    options = record.obj = await offload_if(request.has_long_query, read_options, subresource, kind, request)
    await scope.shared.admission.admit(record)
    await scope.shared.admission.validate(record)
    if record.obj != options:
        ask_for(record.obj, request)
