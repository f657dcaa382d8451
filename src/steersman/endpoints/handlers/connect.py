"""Subresources that take over the whole request instead of reading or writing an object (log, exec, proxy)."""

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
    """Return the answer of `connecting`, the subresource's function.

    Raises StatusError 400 for a dry run, and refusals of admission.
    """
    ctx = request.context()
    if subresource.name != "log":  # reading a log is a GET upstream, not a connection
        if "dryRun" in request.query:
            raise bad_request("dryRun is not supported")
        if scope.shared.admission.handles(CONNECT):
            await _admit(scope, subresource, request, ctx)
    from steersman.endpoints.proxy.passing import ended_with  # slow to load, and not every server has such subresources

    answering = connecting(ctx, request.action.name, request)
    return await ended_with(scope.shared.watches, answering)


async def _admit(scope: Scope, subresource: Subresource, request: Request, ctx: Context) -> None:
    """Run admission of a connect request. Raises refusals of admission."""
    kind = subresource.kind
    assert kind is not None
    record = attributes(scope, request, ctx, CONNECT)
    record.kind = kind.gvk
    options = record.obj = await offload_if(request.has_long_query, read_options, subresource, kind, request)
    await scope.shared.admission.admit(record)
    await scope.shared.admission.validate(record)
    if record.obj != options:
        ask_for(record.obj, request)
