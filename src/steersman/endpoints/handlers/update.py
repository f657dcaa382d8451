"""PUT of an object, or of a subresource with the object's own kind."""

from __future__ import annotations

from typing import Any

from steersman.endpoints.bodies import body_media_type, check_names, decode
from steersman.endpoints.objects import item_response
from steersman.endpoints.options import update_options
from steersman.endpoints.ownership import deduplicate_owners, own_changed, own_new
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import converted, in_serialization, written
from steersman.endpoints.writing import Write, parse, store_changed
from steersman.net.message import Response
from steersman.rest.capabilities import Updater
from steersman.tracing.trace import in_step
from steersman.work.offloading import offload


async def update(scope: Scope[Updater], request: Request) -> Response:
    """Replace the object by the body's and answer 200 with it, or 201 if the kind can be created by PUT."""
    write = await parse(scope, request, body_media_type, update_options)
    first: Any = await converted(offload(_replacement, write))
    uid = first.metadata.uid

    async def prepare(old: Any | None) -> Any:
        nonlocal first
        obj, first = first, None
        if obj is None:  # another write came first, and the decoded body has been modified
            obj = await offload(_replacement, write)
        return await in_step("managed fields", scope.run(_replacing, write, obj, old))

    item, created = await written(write.data, store_changed(write, prepare, uid=uid))
    return await in_serialization(
        write.wanted, item_response(scope, request, item, write.wanted, 201 if created else 200)
    )


def _replacement(write: Write) -> Any:
    """Return the body's object for a replacement: decoded, checked against the URL, and defaulted."""
    scope, request = write.scope, write.request
    obj = decode(scope, request, write.data, write.media, write.options.field_validation, scope.kind)
    scope.kind.default(obj)
    if request.audit is not None:
        request.audit.set_request_object(obj.metadata, lambda: scope.kind.prefix + scope.kind.body(obj))
    check_names(scope, request, obj.metadata)
    obj.metadata.self_link = ""
    if obj.metadata.owner_references:
        deduplicate_owners(request, obj, after_admission=False)
    return obj


def _replacing(write: Write, obj: Any, old: Any | None) -> Any:
    """Return the sent object in the stored version with the owners of its fields; `old` is the object to replace."""
    scope, request, manager = write.scope, write.request, write.options.field_manager
    if old is None:
        entries = own_new(scope, request, obj, manager)
    else:
        theirs = scope.other.from_hub(old) if scope.other else old
        entries = own_changed(scope, request, obj, theirs, manager)
    new = obj if scope.other is None else scope.to_hub(obj)
    new.metadata.managed_fields = entries
    if old is None:
        new.metadata.deletion_timestamp = None
    return new
