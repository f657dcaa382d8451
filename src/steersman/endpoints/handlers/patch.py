"""PATCH of an object or a subresource: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

Server-side apply is beside, in `apply.py`.
"""

from __future__ import annotations

from typing import Any

from steersman.admission.interface import UPDATE
from steersman.endpoints.admit import admit, check_update
from steersman.endpoints.bodies import lane_for, read_body
from steersman.endpoints.handlers.apply import APPLY_YAML, is_apply, server_side_apply
from steersman.endpoints.handlers.update import check_names
from steersman.endpoints.negotiation import JSON
from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.options import patch_options
from steersman.endpoints.ownership import own_changed
from steersman.endpoints.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Patch
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.kinds.kind import Kind
from steersman.machinery.errors.status import not_found, unsupported_media_type
from steersman.net.message import Response


async def patch(scope: Scope, request: Request) -> Response:
    """Changes the object as the body says and answers 200 with it."""
    if is_apply(request):
        return await server_side_apply(scope, request)
    wanted = representation(scope, request)
    body = await read_patch(scope, request)
    options = body.options
    ctx = scope.context(request, dry_run=bool(options.dry_run), lane=lane_for(scope, request, body.data, JSON))

    async def make(old: Any | None) -> Any:
        if old is None:
            raise not_found(scope.group_resource, request.action.name)
        new = await scope.run(ctx.lane, _patched, scope, request, body, old)
        return await admit(scope, request, ctx, UPDATE, new, old, options)

    item, _ = await scope.storage.update(
        ctx, request.action.name, make,
        check_update=check_update(scope, request, ctx, options),
        subresource=request.action.subresource,
    )  # fmt: skip
    return await item_response(scope, request, item, wanted)


def _patched(scope: Scope, request: Request, body: Patch, old: Any) -> Any:
    """What the patch makes of a stored object: defaulted, in the stored version, with the owners of its fields."""
    current = scope.other.from_hub(old) if scope.other else old
    obj = body.applied_to(current, scope.kind)
    check_names(scope, request, obj.metadata)
    scope.kind.default(obj)
    entries = own_changed(scope, request, obj, current, body.options.field_manager)
    hub = scope.to_hub(obj)
    hub.metadata.managed_fields = entries
    return hub


async def read_patch(scope: Scope, request: Request) -> Patch:
    """The body and the options of a PATCH. Raises StatusError 400, 413, 415, 422."""
    media = request.headers.get("content-type", "").partition(";")[0].strip(" ")
    _check_media(scope.kind, media)
    data = await read_body(scope, request)
    return Patch(scope, request, media, data, patch_options(request, apply=False))


def _check_media(kind: Kind[Any], media: str) -> None:
    """Raises StatusError 415. Of kinds without a Go type it is not known how strategic merge patches merge lists."""
    if kind.go_type is not None:
        if media not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH):
            error = unsupported_media_type("415: Unsupported Media Type")
            error.details_present = True
            raise error
    elif media not in (JSON_PATCH, MERGE_PATCH):
        accepted = ", ".join((JSON_PATCH, MERGE_PATCH, APPLY_YAML))
        text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise unsupported_media_type(text)
