"""Subresources that act on an object when something is POSTed to them: binding, eviction, token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from steersman.admission.interface import CREATE
from steersman.api.meta.v1 import CreateOptions
from steersman.endpoints.admit import attributes
from steersman.endpoints.bodies import decode, lane_for, read_body, request_media
from steersman.endpoints.objects import representation
from steersman.endpoints.options import write_options
from steersman.endpoints.ownership import own_action
from steersman.endpoints.request import Request
from steersman.endpoints.responses import encoded_response
from steersman.endpoints.scope import Scope
from steersman.kinds.built_in import stamp
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import bad_request
from steersman.machinery.large_work.slow_lane import done
from steersman.net.message import Response
from steersman.rest.context import Context
from steersman.rest.resource import Subresource

Create = Callable[[Context, str, Any], Awaitable[Any]]


async def act(scope: Scope, subresource: Subresource, create: Create, request: Request) -> Response:
    """Hands the body's object to `create`, the subresource's own, and answers 201 with what that gives back."""
    wanted = representation(scope, request)
    media = request_media(request)
    data = await read_body(scope, request)
    options = write_options(request, CreateOptions)
    lane = lane_for(scope, request, data, media)
    body = await done(lane, _body, scope, subresource, request, data, media, options)
    ctx = scope.context(request, dry_run=bool(options.dry_run), lane=lane)
    chain = scope.shared.admission
    if chain.handles(CREATE):
        assert subresource.kind is not None
        record = attributes(scope, request, ctx, CREATE, obj=body, options=options, kind=subresource.kind.gvk)
        await chain.admit(record)
        await chain.validate(record)
        body = record.obj
    answer = await create(ctx, request.action.name, body)
    stamp(answer)
    return encoded_response(encode(answer), wanted, 201)


def _body(
    scope: Scope, subresource: Subresource, request: Request, data: bytes, media: str, options: CreateOptions
) -> Any:
    """The object of a body: checked against the URL, and defaulted."""
    kind = subresource.kind
    assert kind is not None
    body = decode(scope, request, data, media, options.field_validation, kind, subresource.also_accepts)
    namespace = body.metadata.namespace
    if namespace and scope.resource.namespaced and namespace != request.action.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    kind.default(body)
    body.metadata.managed_fields = own_action(request, kind, body, options.field_manager)
    return body
