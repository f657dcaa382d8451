"""PUT of an object, or of a subresource that is the object under other rules."""

from __future__ import annotations

from functools import partial
from typing import Any

from steersman.admission.interface import CREATE, UPDATE
from steersman.api.meta.v1 import UpdateOptions
from steersman.endpoints.admit import admit, check_update
from steersman.endpoints.bodies import decode, lane_for, read_body, request_media
from steersman.endpoints.handlers.authorize import check_authorized_create
from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.options import write_options
from steersman.endpoints.ownership import deduplicate_owners, own_changed, own_new
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.errors.status import bad_request
from steersman.machinery.large_work.slow_lane import done
from steersman.net.message import Response


async def update(scope: Scope, request: Request) -> Response:
    """Replaces the object by the body's and answers 200 with it, or 201 where the kind may be made this way."""
    wanted = representation(scope, request)
    media = request_media(request)
    data = await read_body(scope, request)
    options = write_options(request, UpdateOptions)
    lane = lane_for(scope, request, data, media)
    ctx = scope.context(request, dry_run=bool(options.dry_run), lane=lane)
    read = partial(_replacement, scope, request, data, media, options.field_validation)
    first: Any = await done(lane, read)
    uid = first.metadata.uid

    async def make(old: Any | None) -> Any:
        nonlocal first
        obj, first = first, None
        if obj is None:  # another write came first, and what was made of the body is used up
            obj = await done(lane, read)
        new = await scope.run(ctx.lane, _replacing, scope, request, obj, old, options.field_manager)
        return await admit(scope, request, ctx, CREATE if old is None else UPDATE, new, old, options)

    item, created = await scope.storage.update(
        ctx, request.action.name, make,
        uid=uid,
        check_create=check_authorized_create(scope, request, ctx, options),
        check_update=check_update(scope, request, ctx, options),
        subresource=request.action.subresource,
    )  # fmt: skip
    return await item_response(scope, request, item, wanted, 201 if created else 200)


def _replacement(scope: Scope, request: Request, data: bytes, media: str, validation: str) -> Any:
    """The object of a body made one that may replace another: checked against the URL, and defaulted."""
    obj = decode(scope, request, data, media, validation, scope.kind)
    check_names(scope, request, obj.metadata)
    obj.metadata.self_link = ""
    scope.kind.default(obj)
    deduplicate_owners(request, obj, after_admission=False)
    return obj


def _replacing(scope: Scope, request: Request, obj: Any, old: Any | None, field_manager: str) -> Any:
    """The object sent in the stored version, with the owners of its fields; `old` is what it replaces."""
    if old is None:
        entries = own_new(scope, request, obj, field_manager)
    else:
        theirs = scope.other.from_hub(old) if scope.other else old
        entries = own_changed(scope, request, obj, theirs, field_manager)
    new = scope.to_hub(obj)
    new.metadata.managed_fields = entries
    if old is None:
        new.metadata.deletion_timestamp = None
    return new


def check_names(scope: Scope, request: Request, metadata: Any) -> None:
    """The body may not contradict the URL. Raises StatusError 400."""
    if scope.resource.namespaced and metadata.namespace and metadata.namespace != request.action.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    name = request.action.name
    if not metadata.name:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if metadata.name != name:
        raise bad_request(f"the name of the object ({metadata.name}) does not match the name on the URL ({name})")
