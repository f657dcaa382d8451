"""PATCH of an object or a subresource: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

Server-side apply is in `apply.py`.
"""

from __future__ import annotations

from typing import Any

from steersman.endpoints.bodies import check_names
from steersman.endpoints.handlers.apply import is_apply, server_side_apply
from steersman.endpoints.objects import item_response
from steersman.endpoints.options import patch_options
from steersman.endpoints.ownership import own_changed
from steersman.endpoints.patches import patch_media_type, patched
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import in_serialization
from steersman.endpoints.writing import Write, parse, store_changed
from steersman.machinery.errors.status import not_found
from steersman.net.message import Response
from steersman.rest.capabilities import Updater
from steersman.tracing.trace import add_event, current_step, in_step
from steersman.work.offloading import offload


async def patch(scope: Scope[Updater], request: Request) -> Response:
    """Patch the object and answer 200 with it."""
    if is_apply(request):
        return await server_side_apply(scope, request)
    if scope.kind.go_type is not None:  # upstream's router checks the media type before Accept
        patch_media_type(scope, request)
    write = await parse(scope, request, patch_media_type, patch_options)
    if request.audit is not None:
        await offload(request.audit.set_patch, write.data)
    add_event("Recorded the audit event")

    opened = current_step()

    async def prepare(old: Any | None) -> Any:
        if old is None:
            raise not_found(scope.group_resource, request.action.name)
        if opened is not None:
            opened.add_event("About to apply patch")
        current, obj = await in_step("patch", offload(_patched, write, old))
        new = await in_step("managed fields", scope.run(_owned, write, obj, current))
        if opened is not None:
            opened.add_event("About to check admission control")
        return new

    changed = await store_changed(write, prepare)
    add_event("Object stored in database")
    return await in_serialization(write.wanted, item_response(scope, request, changed.item, write.wanted))


def _patched(write: Write, old: Any) -> tuple[Any, Any]:
    """Return the stored object in the version of the request, and the patched object with defaults."""
    scope, request = write.scope, write.request
    current = scope.other.from_hub(old) if scope.other else old
    obj = patched(write, current, scope.kind)
    check_names(scope, request, obj.metadata)
    scope.kind.default(obj)
    return current, obj


def _owned(write: Write, obj: Any, current: Any) -> Any:
    """Return the patched object in the stored version with the owners of its fields; `current` is the object before."""
    scope = write.scope
    entries = own_changed(scope, write.request, obj, current, write.options.field_manager)
    hub = obj if scope.other is None else scope.to_hub(obj)
    hub.metadata.managed_fields = entries
    return hub
