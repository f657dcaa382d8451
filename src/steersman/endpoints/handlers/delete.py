"""DELETE of one object."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.api.meta.v1 import DeleteOptions
from steersman.endpoints.admit import check_delete
from steersman.endpoints.bodies import body_media_type, is_large_body, read_body
from steersman.endpoints.negotiation import PROTOBUF, YAML
from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.parameters import decode_parameters
from steersman.endpoints.request import Request
from steersman.endpoints.responses import status_response
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import in_serialization
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import encode
from steersman.machinery.codec.strict import DecodeError, Media, decode_object, peek_type_meta
from steersman.machinery.errors.status import bad_request, invalid
from steersman.machinery.identity.schema import GroupKind, no_kind_registered
from steersman.machinery.validation.options import validate_delete_options
from steersman.net.message import Response
from steersman.rest.capabilities import GracefulDeleter, Item
from steersman.tracing.trace import StepKind, add_event, in_step
from steersman.work.offloading import offload_if


class _Metadata(msgspec.Struct, gc=False):
    name: str = ""
    uid: str = ""


class _Deleted(msgspec.Struct, gc=False):
    """The metadata of a deleted object for the answer; decoding skips the rest."""

    metadata: _Metadata


_DELETE: Final = StepKind("delete")
_INTERNAL: Final = "meta.k8s.io/__internal"
"""API version of the options in audit events."""
_DELETED: Final = msgspec.json.Decoder(_Deleted)


async def delete(scope: Scope[GracefulDeleter], request: Request) -> Response:
    """Delete the object, or mark it for deletion; answer with a Status, or the object where that is the convention."""
    negotiated = representation(scope, request)
    options = await read_delete_options(scope, request)
    ctx = request.context(dry_run=bool(options.dry_run))
    check = check_delete(scope, request, ctx, options)
    add_event("About to delete object from database")
    item, gone = await in_step(_DELETE, scope.storage.delete(ctx, request.action.name, options, check))
    add_event("Object deleted from database")
    code = 202 if not gone and options.orphan_dependents is False else 200
    if scope.resource.returns_deleted_object or not gone:
        return await in_serialization(negotiated, item_response(scope, request, item, negotiated, code))
    add_event("About to write a response")
    response = status_response(request, _success(scope, item), negotiated, code)
    add_event("Writing http response done")
    return response


def _success(scope: Scope, item: Item) -> dict[str, Any]:
    metadata = _DELETED.decode(b"{" + item.body).metadata
    details = {"name": metadata.name, "group": scope.group, "kind": scope.resource.plural, "uid": metadata.uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


async def read_delete_options(scope: Scope, request: Request) -> DeleteOptions:
    """Return the options of a delete, from the body or else the query. Raises StatusError 400 and 422."""
    data = await read_body(scope, request)
    if data:
        media = body_media_type(scope, request)
        options = await offload_if(is_large_body(scope, request, data, media), decode_options, data, media)
        if request.audit is not None:
            shown = msgspec.structs.replace(options, kind="DeleteOptions", api_version=_INTERNAL)
            request.audit.set_request_object(None, lambda: encode(shown))
    else:
        options = await offload_if(request.has_long_query, decode_parameters, DeleteOptions, request.query)
    # the feature gate of this option (AllowUnsafeMalformedObjectDeletion) is off by default
    options.ignore_store_read_error_with_cluster_breaking_potential = None
    if errors := list(validate_delete_options(options)):
        raise invalid(GroupKind("meta.k8s.io", "DeleteOptions"), "", errors)
    return options


def decode_options(data: bytes, media: str) -> DeleteOptions:
    """Return DeleteOptions of any group version. Raises StatusError 400 with the decoder's own text."""
    language: Media = "yaml" if media == YAML else "json"
    try:
        if media == PROTOBUF:
            return protobuf.decode_object(DeleteOptions, data)
        api_version, kind = peek_type_meta(data, language)
        options = decode_object(DeleteOptions, data, language, want_strict=False).obj
    except DecodeError as error:
        raise bad_request(str(error)) from None
    if kind not in ("", "DeleteOptions"):
        raise bad_request(no_kind_registered(kind, api_version))
    return options
