"""LIST of a collection, and WATCH by query parameter."""

from __future__ import annotations

from steersman.endpoints.handlers.watch import watch
from steersman.endpoints.lists import list_response
from steersman.endpoints.objects import representation
from steersman.endpoints.options import list_options
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import ENCODE, listed
from steersman.net.message import Response
from steersman.rest.capabilities import Lister
from steersman.tracing.trace import current_recorder, recorded


async def list_(scope: Scope[Lister], request: Request) -> Response:
    """Answer with the objects that the selectors match, or with a watch if the query asks for it."""
    if request.action.verb == "watch":
        return await watch(scope, request)
    negotiated = representation(scope, request, collection=True)
    options = await list_options(scope, request)
    listing = scope.storage.list(request.context(), options)
    recorder = current_recorder()
    if recorder is None:
        return await list_response(scope, request, await listing, negotiated)
    objects = await listed(recorder, listing)
    answering = list_response(scope, request, objects, negotiated)
    return await recorded(recorder, ENCODE, answering, negotiated.media)
