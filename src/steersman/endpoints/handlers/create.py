"""POST of a new object to its collection."""

from __future__ import annotations

from typing import Any

from steersman.endpoints.bodies import body_media_type, check_names, decode, set_namespace
from steersman.endpoints.objects import item_response
from steersman.endpoints.options import create_options
from steersman.endpoints.ownership import deduplicate_owners, own_new
from steersman.endpoints.request import Request
from steersman.endpoints.responses import object_response
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import converted, in_serialization, written
from steersman.endpoints.writing import Write, admitted, parse, store_new
from steersman.kinds.built_in import stamp
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import not_implemented
from steersman.net.message import Response
from steersman.rest.capabilities import Answerer, Creater, Encoded
from steersman.work.offloading import offload


async def create(scope: Scope[Creater], request: Request) -> Response:
    """Store the body's object and answer 201 with it."""
    write = await parse(scope, request, body_media_type, create_options)
    obj = await converted(scope.run(_new, write))
    if scope.resource.not_yet:
        raise not_implemented(scope.resource.not_yet)
    item = await written(write.data, store_new(write, obj))
    return await in_serialization(write.wanted, item_response(scope, request, item, write.wanted, 201))


async def answer(scope: Scope[Answerer], request: Request) -> Response:
    """Answer 201 with the result for the body's object, an object or a Status, of a kind that is never stored."""
    write = await parse(scope, request, body_media_type, create_options)
    obj = (await admitted(write, await converted(scope.run(_new, write)), None)).obj
    answered = await scope.storage.answer(write.ctx, obj)
    if isinstance(answered, type(obj)):
        body = await offload(scope.kind.body, answered)
        return await in_serialization(write.wanted, item_response(scope, request, Encoded(body), write.wanted, 201))
    stamp(answered)
    return object_response(request, encode(answered), write.wanted, 201)


def _new(write: Write) -> Any:
    """Return the object to create in the stored version."""
    scope, request = write.scope, write.request
    obj = decode(scope, request, write.data, write.media, write.options.field_validation, scope.kind)
    metadata = obj.metadata
    if request.action.name:  # custom objects may be posted to their own paths
        check_names(scope, request, metadata)
    scope.kind.default(obj)
    if request.audit is not None:
        request.audit.set_request_object(metadata, lambda: scope.kind.prefix + scope.kind.body(obj))
    set_namespace(scope, request, metadata)
    metadata.deletion_timestamp = None
    metadata.deletion_grace_period_seconds = None
    metadata.self_link = ""
    entries = own_new(scope, request, obj, write.options.field_manager)
    if metadata.owner_references:
        deduplicate_owners(request, obj, after_admission=False)
    hub = obj if scope.other is None else scope.to_hub(obj)
    hub.metadata.managed_fields = entries
    return hub
