"""DELETE of a collection: every object that the equivalent list would return."""

from __future__ import annotations

from steersman.endpoints.admit import check_delete
from steersman.endpoints.handlers.delete import read_delete_options
from steersman.endpoints.lists import list_response
from steersman.endpoints.objects import representation
from steersman.endpoints.options import list_options
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import in_serialization, listed
from steersman.net.message import Response
from steersman.rest.capabilities import CollectionDeleter
from steersman.tracing.trace import current_recorder


async def delete_collection(scope: Scope[CollectionDeleter], request: Request) -> Response:
    """Delete every object that the selectors match and answer with the list of them."""
    negotiated = representation(scope, request, collection=True)
    options = await list_options(scope, request)
    delete_options = await read_delete_options(scope, request)
    ctx = request.context(dry_run=bool(delete_options.dry_run))
    check = check_delete(scope, request, ctx, delete_options)
    deleting = scope.storage.delete_collection(ctx, delete_options, options, check)
    recorder = current_recorder()
    deleted = await (deleting if recorder is None else listed(recorder, deleting))
    return await in_serialization(negotiated, list_response(scope, request, deleted, negotiated))
