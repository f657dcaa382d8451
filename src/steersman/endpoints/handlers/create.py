"""POST of a new object to its collection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from steersman.admission.interface import CREATE
from steersman.api.meta.v1 import CreateOptions
from steersman.endpoints.admit import admit, check_create
from steersman.endpoints.bodies import decode, lane_for, read_body, request_media
from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.options import write_options
from steersman.endpoints.ownership import deduplicate_owners, own_new
from steersman.endpoints.request import Request
from steersman.endpoints.responses import encoded_response
from steersman.endpoints.scope import Scope
from steersman.kinds.built_in import stamp
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import bad_request, not_implemented
from steersman.machinery.large_work.slow_lane import done
from steersman.net.message import Response
from steersman.rest.capabilities import Encoded
from steersman.rest.context import Context

Answerer = Callable[[Context, Any], Awaitable[Any]]


async def create(scope: Scope, request: Request, answerer: Answerer | None = None) -> Response:
    """Stores the body's object and answers 201 with it.

    With an `answerer`, for kinds that are never stored, what that makes of it, an object or a Status, is the answer.
    """
    wanted = representation(scope, request)
    media = request_media(request)
    data = await read_body(scope, request)
    options = write_options(request, CreateOptions)
    lane = lane_for(scope, request, data, media)
    ctx = scope.context(request, dry_run=bool(options.dry_run), lane=lane)
    hub = await scope.run(lane, _new_hub, scope, request, data, media, options)
    if scope.resource.not_yet:
        raise not_implemented(scope.resource.not_yet)
    hub = await admit(scope, request, ctx, CREATE, hub, None, options)
    if answerer is not None:
        return await _answer_unstored(scope, request, ctx, hub, answerer)
    item = await scope.storage.create(ctx, hub, check_create(scope, request, ctx, options))
    return await item_response(scope, request, item, wanted, 201)


def _new_hub(scope: Scope, request: Request, data: bytes, media: str, options: CreateOptions) -> Any:
    """The object of a body made the one to create, in the stored version."""
    obj = decode(scope, request, data, media, options.field_validation, scope.kind)
    prepare_new(scope, request, obj)
    entries = own_new(scope, request, obj, options.field_manager)
    deduplicate_owners(request, obj, after_admission=False)
    hub = scope.to_hub(obj)
    hub.metadata.managed_fields = entries
    return hub


def prepare_new(scope: Scope, request: Request, obj: Any) -> None:
    """Makes a decoded object the one to create: checked against the URL, and defaulted."""
    metadata = obj.metadata
    namespace = request.action.namespace if scope.resource.namespaced else ""
    if metadata.namespace and metadata.namespace != namespace and scope.resource.namespaced:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata.deletion_timestamp = None
    metadata.deletion_grace_period_seconds = None
    metadata.self_link = ""
    scope.kind.default(obj)


async def _answer_unstored(scope: Scope, request: Request, ctx: Context, obj: Any, answerer: Answerer) -> Response:
    answer = await answerer(ctx, obj)
    wanted = representation(scope, request)
    if isinstance(answer, type(obj)):
        body = await done(ctx.lane, scope.kind.body, answer)
        return await item_response(scope, request, Encoded(body), wanted, 201)
    stamp(answer)
    return encoded_response(encode(answer), wanted, 201)
