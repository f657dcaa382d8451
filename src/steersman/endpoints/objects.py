"""Answers made of objects: one item or a list, as JSON, YAML, metadata only, or Table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from steersman.api.meta.v1 import ListMeta, ObjectMeta, PartialObjectMetadata
from steersman.endpoints.compression import compress
from steersman.endpoints.negotiation import JSON, META_GROUP, PLAIN_JSON, PROTOBUF, YAML, Representation, negotiate
from steersman.endpoints.request import Request
from steersman.endpoints.responses import COMPRESS_OVER, JSON_TYPE, PROTOBUF_TYPE, encoded_response, pretty_wanted
from steersman.endpoints.scope import Scope
from steersman.endpoints.table import include_object, table_of
from steersman.machinery import protobuf
from steersman.machinery.errors import not_acceptable
from steersman.machinery.schema import GroupVersionKind
from steersman.machinery.serializer import encode, encode_in_order
from steersman.net.message import Response
from steersman.rest.capabilities import Item, Listing

_SLICE: Final = 100
"""Objects turned into another representation between two turns of the loop."""
_PARTIAL: Final = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b",'


def representation(scope: Scope, request: Request, *, collection: bool = False) -> Representation:
    """What the client wants of this endpoint. Raises StatusError 406."""
    accept = request.headers.get("accept", "")
    pretty = pretty_wanted(request)
    if accept == JSON and not pretty and not collection:
        return PLAIN_JSON
    tables = scope.tables
    return negotiate(accept, tables=tables, partial=tables, pretty=pretty, offers_stream=collection)


def item_response(scope: Scope, request: Request, item: Item, wanted: Representation, code: int = 200) -> Response:
    """One object as the answer."""
    if wanted is PLAIN_JSON or (not wanted.as_kind and wanted.media == JSON and not wanted.pretty):
        return Response(code, [JSON_TYPE], b"%b%b\n" % (scope.prefix, scope.body(item)))
    if not wanted.as_kind:
        if wanted.media == PROTOBUF:
            return Response(code, [PROTOBUF_TYPE], protobuf.envelope(scope.protobuf(item), scope.gvk))
        return encoded_response(scope.prefix + scope.body(item), wanted, code)
    if wanted.as_kind == "PartialObjectMetadataList":
        raise not_acceptable(
            "you requested PartialObjectMetadataList, but the requested object is not a list "
            f"(*{scope.go_package}.{scope.kind_name})"
        )
    if wanted.as_kind == "Table":
        including = include_object(request, wanted)
        table = table_of(scope, [item], wanted, including, revision=str(item.revision) if item.revision else "")
        return encoded_response(encode_in_order(table), wanted, code)
    return encoded_response(partial_object(scope, item, wanted.as_version), wanted, code)


def partial_object(scope: Scope, item: Item, version: str) -> bytes:
    """The metadata of an object, as a PartialObjectMetadata."""
    return _PARTIAL % version.encode() + partial_body(scope, item)


def partial_body(scope: Scope, item: Item) -> bytes:
    """What of a PartialObjectMetadata follows kind and apiVersion."""
    metadata: ObjectMeta = scope.storage.decode(item).metadata
    return encode(PartialObjectMetadata(metadata=metadata))[1:]


def list_metadata(listing: Listing) -> bytes:
    """The ListMeta of a list, as JSON."""
    metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)}
    if listing.continue_token:
        metadata["continue"] = listing.continue_token
        if listing.remaining is not None and listing.remaining > 0:
            metadata["remainingItemCount"] = listing.remaining
    return encode_in_order(metadata)


async def list_response(scope: Scope, request: Request, listing: Listing, wanted: Representation) -> Response:
    """A list as the answer, compressed where it is large and the client accepts that. Raises StatusError 406."""
    if wanted.as_kind == "PartialObjectMetadata":
        raise not_acceptable(
            "you requested PartialObjectMetadata, but the requested object is a list "
            f"(*{scope.go_package}.{scope.kind_name}List)"
        )
    if wanted.as_kind == "Table":
        table = await _table(scope, request, listing, wanted)
        response = encoded_response(encode_in_order(table), wanted)
    else:
        if wanted.media == PROTOBUF:
            pieces = await _protobuf_pieces(scope, listing, wanted)
            return await maybe_compressed(scope, request, Response(200, [PROTOBUF_TYPE], pieces))
        pieces = await _pieces(scope, listing, wanted)
        if wanted.media == YAML or wanted.pretty:
            response = encoded_response(b"".join(pieces)[:-1], wanted)
        else:
            response = Response(200, [JSON_TYPE], pieces)
    return await maybe_compressed(scope, request, response)


async def maybe_compressed(scope: Scope, request: Request, response: Response) -> Response:
    """The answer with a gzip body if it is over 128 KiB and the client accepts gzip."""
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return response
    body = response.body
    if isinstance(body, bytes):
        size = len(body)
    elif isinstance(body, list):
        size = sum(map(len, body))
    else:
        return response
    return await compress(response, scope.shared.executor) if size > COMPRESS_OVER else response


async def _pieces(scope: Scope, listing: Listing, wanted: Representation) -> list[bytes]:
    items = listing.items
    head = scope.list_prefix
    if wanted.as_kind:
        head = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/%b",' % wanted.as_version.encode()
    start = head + b'"metadata":' + list_metadata(listing) + b',"items":['
    if not items:
        return [start[:-1] + (b"null" if wanted.as_kind else b"[]") + b"}\n"]
    bodies = await _bodies(scope, items, wanted)
    opening = b"{"
    between = b",{"
    if wanted.as_kind:
        opening = _PARTIAL % wanted.as_version.encode()
        between = b"," + opening
    pieces = [between] * (2 * len(bodies) + 1)
    pieces[0] = start + opening
    pieces[1::2] = bodies
    pieces[-1] = b"]}\n"
    return pieces


async def _protobuf_pieces(scope: Scope, listing: Listing, wanted: Representation) -> list[bytes]:
    """A list as protobuf, joined out of the messages of its items."""
    gvk = scope.gvk._replace(kind=f"{scope.kind_name}List")
    message = scope.protobuf
    if wanted.as_kind:
        gvk = GroupVersionKind(META_GROUP, wanted.as_version, "PartialObjectMetadataList")
        message = partial(_partial_message, scope)
    metadata = ListMeta(resource_version=str(listing.revision), continue_=listing.continue_token)
    if listing.continue_token and listing.remaining:
        metadata.remaining_item_count = listing.remaining
    bodies: list[bytes] = []
    items = listing.items
    for at in range(0, len(items), _SLICE):
        if at:
            await asyncio.sleep(0)
        bodies += [protobuf.list_item(message(item)) for item in items[at : at + _SLICE]]
    return protobuf.encode_list(metadata, bodies, gvk)


def _partial_message(scope: Scope, item: Item) -> bytes:
    return protobuf.encode_body(PartialObjectMetadata(metadata=scope.storage.decode(item).metadata))


async def _bodies(scope: Scope, items: Sequence[Item], wanted: Representation) -> list[bytes]:
    if not wanted.as_kind and scope.other is None:
        return [item.body for item in items]
    bodies: list[bytes] = []
    for at in range(0, len(items), _SLICE):
        if at:
            await asyncio.sleep(0)
        for item in items[at : at + _SLICE]:
            bodies.append(partial_body(scope, item) if wanted.as_kind else scope.body(item))
    return bodies


async def _table(scope: Scope, request: Request, listing: Listing, wanted: Representation) -> dict[str, Any]:
    including = include_object(request, wanted)
    rows: list[Any] = []
    table: dict[str, Any] = {}
    for at in range(0, max(len(listing.items), 1), _SLICE):
        if at:
            await asyncio.sleep(0)
        table = table_of(scope, listing.items[at : at + _SLICE], wanted, including)
        rows += table["rows"]
    table["metadata"] = {"resourceVersion": str(listing.revision)}
    if listing.continue_token:
        table["metadata"]["continue"] = listing.continue_token
        if listing.remaining:
            table["metadata"]["remainingItemCount"] = listing.remaining
    table["rows"] = rows
    return table
