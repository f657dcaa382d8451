"""Subresources that act on an object when an object is POSTed to them: binding, eviction, token."""

from __future__ import annotations

from typing import Any

from steersman.admission.interface import CREATE
from steersman.endpoints.bodies import body_media_type, decode, set_namespace
from steersman.endpoints.options import create_options
from steersman.endpoints.ownership import own_action
from steersman.endpoints.request import Request
from steersman.endpoints.responses import object_response
from steersman.endpoints.scope import Scope
from steersman.endpoints.writing import Write, mutated, parse
from steersman.kinds.built_in import stamp
from steersman.machinery.codec.serializer import encode
from steersman.net.message import Response
from steersman.rest.bound import Act
from steersman.rest.resource import Subresource
from steersman.work.offloading import offload


async def act(scope: Scope, subresource: Subresource, acting: Act, request: Request) -> Response:
    """Pass the body's object to `acting`, the subresource's function, and answer 201 with its result."""
    write = await parse(scope, request, body_media_type, create_options)
    body = await offload(_body, write, subresource)
    chain = scope.shared.admission
    if chain.handles(CREATE):
        assert subresource.kind is not None
        record = write.admission(CREATE, body, None, kind=subresource.kind.gvk)
        await mutated(write, record)
        await chain.validate(record)
        body = record.obj
    answer = await acting(write.ctx, request.action.name, body)
    stamp(answer)
    return object_response(request, encode(answer), write.wanted, 201)


def _body(write: Write, subresource: Subresource) -> Any:
    """Return the decoded object of a body, checked against the URL and defaulted."""
    scope, request, options, kind = write.scope, write.request, write.options, subresource.kind
    assert kind is not None
    validation = options.field_validation
    body = decode(scope, request, write.data, write.media, validation, kind, subresource.also_accepts)
    kind.default(body)
    if request.audit is not None:
        request.audit.set_request_object(body.metadata, lambda: kind.prefix + kind.body(body))
    set_namespace(scope, request, body.metadata)
    body.metadata.managed_fields = own_action(request, kind, body, options.field_manager)
    return body
