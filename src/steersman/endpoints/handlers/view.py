"""Subresources that show and change an object as another kind, e.g. `scale`."""

from __future__ import annotations

from typing import Any

from steersman.admission.interface import UPDATE
from steersman.api.meta.v1 import UpdateOptions
from steersman.endpoints.admit import attributes, check_update
from steersman.endpoints.bodies import decode, lane_for, read_body, request_media
from steersman.endpoints.handlers.apply import is_apply, read_configuration
from steersman.endpoints.handlers.patch import read_patch
from steersman.endpoints.handlers.update import check_names
from steersman.endpoints.negotiation import JSON, Representation
from steersman.endpoints.objects import representation
from steersman.endpoints.options import write_options
from steersman.endpoints.ownership import own_applied_view, own_view, show_in_view, view_applier
from steersman.endpoints.request import Request
from steersman.endpoints.responses import encoded_response
from steersman.endpoints.scope import Scope
from steersman.endpoints.table import include_object, view_table
from steersman.machinery.codec.serializer import encode, encode_in_order
from steersman.machinery.errors.status import conflict
from steersman.machinery.large_work.slow_lane import SlowLane, done, is_large
from steersman.net.message import Response
from steersman.rest.capabilities import Item
from steersman.rest.resource import Subresource


async def get_view(scope: Scope, subresource: Subresource, request: Request) -> Response:
    """The view of the object."""
    wanted = representation(scope, request)
    item = await scope.storage.get(
        scope.context(request), request.action.name, request.query.get("resourceVersion", "")
    )
    return await _answer(scope, subresource, request, item, wanted)


async def update_view(scope: Scope, subresource: Subresource, request: Request) -> Response:
    """Puts the body's view into the object."""
    wanted = representation(scope, request)
    media = request_media(request)
    data = await read_body(scope, request)
    options = write_options(request, UpdateOptions)
    assert subresource.kind is not None
    lane = lane_for(scope, request, data, media)
    view = await done(lane, decode, scope, request, data, media, options.field_validation, subresource.kind)
    check_names(scope, request, view.metadata)

    async def replaced(_old: Any, _lane: SlowLane | None) -> Any:
        return view

    item = await _write(scope, subresource, request, options, replaced, uid=view.metadata.uid)
    return await _answer(scope, subresource, request, item, wanted)


async def patch_view(scope: Scope, subresource: Subresource, request: Request) -> Response:
    """Patches the view and puts the result into the object."""
    if is_apply(request):
        return await apply_view(scope, subresource, request)
    wanted = representation(scope, request)
    body = await read_patch(scope, request)
    assert subresource.kind is not None
    kind = subresource.kind
    patch_lane = lane_for(scope, request, body.data, JSON)

    async def changed(old: Any, lane: SlowLane | None) -> Any:
        live = await done(lane, _live_view, scope, subresource, old)
        view = await done(patch_lane, body.applied_to, live, kind)
        check_names(scope, request, view.metadata)
        return view

    item = await _write(scope, subresource, request, body.options, changed)
    return await _answer(scope, subresource, request, item, wanted)


async def apply_view(scope: Scope, subresource: Subresource, request: Request) -> Response:
    """Applies a configuration to the view and puts the result into the object."""
    wanted = representation(scope, request)
    configuration = await read_configuration(scope, request)
    assert subresource.kind is not None
    kind = subresource.kind
    applier = view_applier(kind)

    async def applied(old: Any, lane: SlowLane | None) -> Any:
        live = await done(lane, _live_view, scope, subresource, old)
        view, _ = await configuration.applied(applier, live, kind, defaults=False)
        check_names(scope, request, view.metadata)
        return view

    item = await _write(scope, subresource, request, configuration.options, applied, is_applied=True)
    return await _answer(scope, subresource, request, item, wanted)


async def _write(
    scope: Scope, subresource: Subresource, request: Request, options: Any, make_view: Any, *, uid: str = "",
    is_applied: bool = False,
) -> Any:  # fmt: skip
    ctx = scope.context(request, dry_run=bool(options.dry_run))
    chain = scope.shared.admission
    view_of, kind = subresource.view, subresource.kind
    assert view_of is not None
    assert kind is not None

    async def make(old: Any | None) -> Any:
        assert old is not None
        before = await done(ctx.lane, _view, subresource, old)
        new = await done(ctx.lane, scope.resource.kind.copy, old)
        view = await make_view(old, ctx.lane)
        if chain.handles(UPDATE):
            record = attributes(
                scope, request, ctx, UPDATE, obj=view, old=before, options=options, kind=kind.gvk
            )  # fmt: skip
            await chain.admit(record)
            view = record.obj
        version = view.metadata.resource_version
        if version and version != old.metadata.resource_version:
            text = "the object has been modified; please apply your changes to the latest version and try again"
            raise conflict(scope.group_resource, request.action.name, text)
        if is_applied:
            await done(ctx.lane, own_applied_view, scope, new, view)
        else:
            await done(ctx.lane, own_view, scope, request, kind, new, view, before, options.field_manager)
        view_of.write(new, view)
        return new

    admitted = check_update(scope, request, ctx, options, kind=kind.gvk)

    async def check(new: Any, old: Any) -> None:
        if admitted is not None:
            await admitted(view_of.read(new), view_of.read(old))

    item, _ = await scope.storage.update(ctx, request.action.name, make, uid=uid, check_update=check)
    return item


def _view(subresource: Subresource, obj: Any) -> Any:
    assert subresource.view is not None
    return subresource.view.read(obj)


def _live_view(scope: Scope, subresource: Subresource, obj: Any) -> Any:
    """The view as a patch is applied to it, with its owners."""
    view = _view(subresource, obj)
    show_in_view(scope, obj, view)
    return view


async def _answer(
    scope: Scope, subresource: Subresource, request: Request, item: Item, wanted: Representation
) -> Response:
    lane = scope.lane(request) if is_large(item.body) else None
    return await done(lane, _rendered, scope, subresource, request, item, wanted)


def _rendered(scope: Scope, subresource: Subresource, request: Request, item: Item, wanted: Representation) -> Response:
    view = _view(subresource, scope.storage.decode(item))
    assert subresource.kind is not None
    view.kind, view.api_version = subresource.kind.name, subresource.kind.api_version
    if wanted.as_kind == "Table":
        table = view_table(view, subresource.columns, wanted, include_object(request, wanted))
        return encoded_response(encode_in_order(table), wanted)
    return encoded_response(encode(view), wanted)
