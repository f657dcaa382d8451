"""Answers with one object, as JSON, YAML, protobuf, metadata only, or Table."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.meta.v1 import ObjectMeta, PartialObjectMetadata
from steersman.endpoints.negotiation import (
    JSON,
    PLAIN_JSON,
    PRETTY_AGENTS,
    PROTOBUF,
    Representation,
    negotiate,
    wants_pretty,
)
from steersman.endpoints.request import Request
from steersman.endpoints.responses import JSON_TYPE, PROTOBUF_TYPE, encoded_object
from steersman.endpoints.scope import Scope
from steersman.endpoints.table import include_object, table_of
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import encode, encode_in_order
from steersman.machinery.errors.status import not_acceptable
from steersman.machinery.large_work.sizes import is_large
from steersman.net.message import Response
from steersman.rest.capabilities import Item
from steersman.work.offloading import offload_if

_NO_PROTOBUF: Final = (
    "object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be encoded to "
    "a protobuf message"
)
PARTIAL: Final = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b",'


def representation(scope: Scope, request: Request, *, collection: bool = False) -> Representation:
    """Return the representation that the client wants of this endpoint. Raises StatusError 406."""
    accept = request.headers.get("accept", "")
    agent = request.headers.get("user-agent", "")
    pretty = (bool(request.query) or agent.startswith(PRETTY_AGENTS)) and wants_pretty(
        request.query.get("pretty"), agent
    )
    if accept == JSON and not pretty and not collection:
        return PLAIN_JSON
    tables = scope.tables
    routed = not scope.resource.by_definition  # upstream serves custom resources without its router
    wanted = negotiate(accept, tables=tables, partial=tables, pretty=pretty, offers_stream=collection, routed=routed)
    if wanted.media == PROTOBUF and not wanted.as_kind and scope.kind.protobuf is None:
        others = ",".join(each for each in accept.split(",") if PROTOBUF not in each)
        if not others:
            raise not_acceptable(_NO_PROTOBUF)
        return negotiate(others, tables=tables, partial=tables, pretty=pretty, offers_stream=collection, routed=routed)
    return wanted


def check_form(scope: Scope, wanted: Representation) -> None:
    """Raise StatusError 406 if protobuf is wanted of a kind without a protobuf form. Its metadata has that form."""
    if wanted.media == PROTOBUF and not wanted.as_kind and scope.kind.protobuf is None:
        raise not_acceptable(_NO_PROTOBUF)


async def item_response(
    scope: Scope, request: Request, item: Item, wanted: Representation, code: int = 200
) -> Response:
    """Return the answer for one object. Raises StatusError 406."""
    plain = wanted is PLAIN_JSON or (not wanted.as_kind and wanted.media == JSON and not wanted.pretty)
    if plain and scope.other is None:
        data = b"%b%b\n" % (scope.prefix, item.body)
        if request.audit is not None:
            request.audit.set_response_object((data,))
        return Response(code, [JSON_TYPE], data)
    large = scope.resource.columns_take_long or is_large(item.body)
    return await offload_if(large, _rendered, scope, request, item, wanted, code)


def _rendered(scope: Scope, request: Request, item: Item, wanted: Representation, code: int) -> Response:
    if not wanted.as_kind:
        if wanted.media == PROTOBUF:
            if request.audit is not None and request.audit.wants_response:
                request.audit.set_response_object((scope.prefix, scope.body(item)))
            return Response(code, [PROTOBUF_TYPE], protobuf.envelope(scope.protobuf(item), scope.gvk))
        return encoded_object(request, scope.prefix + scope.body(item), wanted, code)
    if wanted.as_kind == "PartialObjectMetadataList":
        raise not_acceptable(
            "you requested PartialObjectMetadataList, but the requested object is not a list "
            f"(*{scope.go_package}.{scope.kind.name})"
        )
    if wanted.as_kind == "Table":
        including = include_object(request)
        table = table_of(scope, [item], wanted, including, revision=str(item.revision) if item.revision else "")
        return encoded_object(request, encode_in_order(table), wanted, code)
    return encoded_object(request, partial_object(scope, item, wanted.as_version), wanted, code)


def partial_object(scope: Scope, item: Item, version: str) -> bytes:
    """Return the metadata of an object, as an encoded PartialObjectMetadata."""
    return PARTIAL % version.encode() + partial_body(scope, item)


def partial_body(scope: Scope, item: Item) -> bytes:
    """Return an encoded PartialObjectMetadata from its metadata on."""
    if not scope.kind.is_open and item.body.startswith(_METADATA):
        return b'"metadata":%b}' % bytes(_WITH_METADATA.decode(b"{" + item.body).metadata)
    metadata: ObjectMeta = scope.row_object(item).metadata
    return encode(PartialObjectMetadata(metadata=metadata))[1:]


_METADATA: Final = b'"metadata":{'


class _WithMetadata(msgspec.Struct):
    """The metadata of an object; decoding skips the rest."""

    metadata: msgspec.Raw


_WITH_METADATA: Final = msgspec.json.Decoder(_WithMetadata)
