"""Subresources that show and change an object as another kind, e.g. `scale`."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from steersman.admission.interface import UPDATE
from steersman.api.meta.v1 import PartialObjectMetadata
from steersman.endpoints.bodies import body_media_type, check_names, decode
from steersman.endpoints.handlers.apply import is_apply, read_configuration
from steersman.endpoints.negotiation import Representation
from steersman.endpoints.objects import representation
from steersman.endpoints.options import get_options, patch_options, update_options
from steersman.endpoints.ownership import own_by_view, own_view, show_in_view, view_applier
from steersman.endpoints.patches import patch_media_type, patched
from steersman.endpoints.request import Request
from steersman.endpoints.responses import object_response
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import GET
from steersman.endpoints.table import include_object, view_table
from steersman.endpoints.writing import Write, mutated, parse
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import encode, encode_in_order
from steersman.machinery.errors.status import StatusError, bad_request, conflict, plain_internal
from steersman.machinery.large_work.sizes import is_large
from steersman.net.message import Response
from steersman.rest.capabilities import Change, Getter, Item, Make, Updater
from steersman.rest.resource import Subresource
from steersman.tracing.trace import current_recorder, recorded
from steersman.work.offloading import offload, offload_if

_NO_OWNERS: Final = (
    "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to "
    "proper version: request to convert CR to an invalid group/version: autoscaling/v1"
)

_BAD_REQUEST: Final = 400
_UNTYPED_VIEW: Final = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
"""Upstream's text for any malformed Scale of a custom resource: it looks up the kind's name in the wrong scheme."""


async def get_view(scope: Scope[Getter], subresource: Subresource, request: Request) -> Response:
    """Answer with the view of the object."""
    wanted = representation(scope, request)
    options = await offload_if(request.has_long_query, get_options, request)
    reading = scope.storage.get(request.context(), request.action.name, options.resource_version)
    if (recorder := current_recorder()) is not None:
        reading = recorded(recorder, GET, reading, options.resource_version)
    return await _answer(scope, subresource, request, await reading, wanted)


async def update_view(scope: Scope[Updater], subresource: Subresource, request: Request) -> Response:
    """Write the body's view into the object."""
    write = await parse(scope, request, body_media_type, update_options)
    kind = _kind(subresource)
    validation = write.options.field_validation
    try:
        view = await offload(decode, scope, request, write.data, write.media, validation, kind)
    except StatusError as error:
        if scope.resource.by_definition and error.code == _BAD_REQUEST:
            raise bad_request(_UNTYPED_VIEW) from None
        raise
    if request.audit is not None:
        request.audit.set_request_object(view.metadata, partial(_document, view, kind))
    check_names(scope, request, view.metadata)

    async def replaced(_old: Any) -> Any:
        return view

    return await _store(write, subresource, replaced, uid=view.metadata.uid)


async def patch_view(scope: Scope[Updater], subresource: Subresource, request: Request) -> Response:
    """Patch the view and write the result into the object."""
    if is_apply(request):
        return await apply_view(scope, subresource, request)
    write = await parse(scope, request, patch_media_type, patch_options)
    if request.audit is not None:
        await offload(request.audit.set_patch, write.data)
    kind = _kind(subresource)

    async def changed(old: Any) -> Any:
        live = await offload(_live_view, scope, subresource, old)
        view = await offload(patched, write, live, kind)
        check_names(scope, request, view.metadata)
        return view

    return await _store(write, subresource, changed)


async def apply_view(scope: Scope[Updater], subresource: Subresource, request: Request) -> Response:
    """Apply a configuration to the view and write the result into the object."""
    configuration = await read_configuration(scope, request)
    write, kind = configuration.write, _kind(subresource)
    applier = view_applier(kind)

    async def applied(old: Any) -> Any:
        live = await offload(_live_view, scope, subresource, old)
        if scope.resource.by_definition and not live.metadata.managed_fields:
            # upstream looks for the first owners among the kinds of the definition, and fails
            raise plain_internal(_NO_OWNERS)
        view, _ = await configuration.applied(applier, live, kind, defaults=False)
        check_names(scope, request, view.metadata)
        return view

    return await _store(write, subresource, applied, is_applied=True)


def _document(view: Any, kind: Kind[Any]) -> bytes:
    return kind.prefix + kind.body(view)


def _kind(subresource: Subresource) -> Kind[Any]:
    assert subresource.kind is not None
    return subresource.kind


async def _store(
    write: Write[Updater], subresource: Subresource, prepare: Make, *, uid: str = "", is_applied: bool = False
) -> Response:
    """Write the view that `prepare` returns for the stored object into it, and answer with the view of the result."""
    scope, ctx, kind, view_of = write.scope, write.ctx, _kind(subresource), subresource.view
    chain = scope.shared.admission
    assert view_of is not None
    manager = write.options.field_manager

    async def make(old: Any | None) -> Any:
        assert old is not None
        before = await offload(_view, subresource, old)
        new = await offload(scope.resource.kind.copy, old)
        view = await prepare(old)
        # before admission: changes of admission plugins have no owner
        await offload(own_view, scope, write.request, kind, old, view, before, manager, is_applied)
        if chain.handles(UPDATE):
            record = write.admission(UPDATE, view, before, kind=kind.gvk)
            await mutated(write, record)
            view = record.obj
        await offload(own_by_view, scope, new, view)
        view_of.write(new, view)
        version = view.metadata.resource_version
        if version and version != old.metadata.resource_version:
            text = "the object has been modified; please apply your changes to the latest version and try again"
            raise conflict(scope.group_resource, write.request.action.name, text)
        return new

    async def check(new: Any, old: Any) -> None:
        if chain.handles(UPDATE):
            await chain.validate(
                write.admission(UPDATE, view_of.read_to_change(new), view_of.read_to_change(old), kind=kind.gvk)
            )

    change = Change(make, uid, check_update=check)
    item = (await scope.storage.update(ctx, write.request.action.name, change)).item
    return await _answer(scope, subresource, write.request, item, write.wanted)


def _view(subresource: Subresource, obj: Any) -> Any:
    assert subresource.view is not None
    return subresource.view.read_to_change(obj)


def _live_view(scope: Scope, subresource: Subresource, obj: Any) -> Any:
    """Return the view with its owners, for patches."""
    view = _view(subresource, obj)
    show_in_view(scope, obj, view)
    return view


async def _answer(
    scope: Scope, subresource: Subresource, request: Request, item: Item, wanted: Representation
) -> Response:
    return await offload_if(is_large(item.body), _rendered, scope, subresource, request, item, wanted)


def _rendered(scope: Scope, subresource: Subresource, request: Request, item: Item, wanted: Representation) -> Response:
    assert subresource.kind is not None
    assert subresource.view is not None
    view = subresource.view.read(scope.storage.decode(item))
    view.kind, view.api_version = subresource.kind.name, subresource.kind.api_version
    if wanted.as_kind == "Table":
        named = scope.resource.by_definition
        table = view_table(view, subresource.columns, wanted, include_object(request), named=named)
        return object_response(request, encode_in_order(table), wanted)
    if wanted.as_kind == "PartialObjectMetadata":
        metadata_only = PartialObjectMetadata(
            kind=wanted.as_kind, api_version=f"meta.k8s.io/{wanted.as_version}", metadata=view.metadata
        )
        return object_response(request, encode(metadata_only), wanted)
    return object_response(request, encode(view), wanted)
