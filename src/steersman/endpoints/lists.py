"""Answers with lists: short ones whole, long ones in slices that are encoded as the client reads them.

The bytes are the same either way. The memory of a long list besides the cached objects is bounded: `WHOLE` bytes before
sending begins, one slice after that. A protobuf list begins with its length, so its messages are kept, up to `KEPT`
bytes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from steersman.api.meta.v1 import ListMeta, PartialObjectMetadata
from steersman.endpoints.negotiation import JSON, META_GROUP, PROTOBUF, YAML, Representation
from steersman.endpoints.objects import PARTIAL, partial_body
from steersman.endpoints.request import Request
from steersman.endpoints.responses import JSON_TYPE, PROTOBUF_TYPE, YAML_TYPE, encoded_response
from steersman.endpoints.scope import Scope
from steersman.endpoints.streamed import StreamedBody
from steersman.endpoints.table import include_object, rows_of, table_of
from steersman.machinery import deflate
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import encode_in_order, pretty
from steersman.machinery.errors.status import not_acceptable
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.large_work.sizes import is_large
from steersman.net.message import Response
from steersman.rest.capabilities import Item, Listing
from steersman.storage.cache.cacher import REPRESENTATIONS_LIMIT
from steersman.work.offloading import Account, current, offload_if
from steersman.work.yielding import next_slice

_FEW_ROWS: Final = 100
"""Objects whose rows are sorted without offloading."""
WHOLE: Final = 2 << 20
"""Bytes up to which an answer is complete before it is sent, with a Content-Length."""
KEPT: Final = 16 << 20
"""Limit of bytes of compressed messages kept between the two passes over a long protobuf list."""
MANY: Final = 2_000
"""Objects above which a list of stored bodies is sent in slices too: more pieces at once would block the event loop."""
SLICE: Final = 100
"""Limit of objects that are encoded in one time slice."""
SLICE_BYTES: Final = 64 << 10
"""Limit of bytes of JSON that are encoded in one time slice: a millisecond's work."""
YAML_SLICE_BYTES: Final = 16 << 10
READY_SLICE_BYTES: Final = 512 << 10
"""Limit of bytes of stored bodies, which are only joined, in one time slice."""
_FEW: Final = 3
"""Time slices of all lists together in one iteration of the event loop."""


async def list_response(scope: Scope, request: Request, listing: Listing, wanted: Representation) -> Response:
    """Return the answer for a list. Raises StatusError 406."""
    if wanted.as_kind == "PartialObjectMetadata":
        raise not_acceptable(
            "you requested PartialObjectMetadata, but the requested object is a list "
            f"(*{scope.go_package}.{scope.kind.list_name})"
        )
    if request.audit is not None and request.audit.wants_response:
        request.audit.set_response_object(await _audited(scope, request, listing, wanted))
    if wanted.as_kind == "Table" and scope.resource.row_order is not None and len(listing.items) > 1:
        much = len(listing.items) > _FEW_ROWS or any(is_large(item.body) for item in listing.items)
        listing = replace(listing, items=await offload_if(much, _in_row_order, scope, listing.items))
    if wanted.media == PROTOBUF:
        response = await _protobuf_response(scope, request, listing, wanted)
    elif (
        not wanted.as_kind
        and scope.other is None
        and not wanted.pretty
        and wanted.media == JSON
        and len(listing.items) <= MANY
    ):
        response = Response(200, [JSON_TYPE], _bodies(scope, listing))
    else:
        response = await _document_response(scope, request, listing, wanted)
    return response


def _in_row_order(scope: Scope, items: Sequence[Item]) -> Sequence[Item]:
    order = scope.resource.row_order
    assert order is not None
    return [item for _, item in sorted(((order(scope.row_object(item)), item) for item in items), key=itemgetter(0))]


def _metadata(listing: Listing) -> dict[str, Any]:
    """Return the ListMeta of a list."""
    metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)}
    if listing.continue_token:
        metadata["continue"] = listing.continue_token
        if listing.remaining is not None and listing.remaining > 0:
            metadata["remainingItemCount"] = listing.remaining
    return metadata


def slices_of(items: Sequence[Item], size: int, start: int = 0) -> Iterator[Sequence[Item]]:
    """Yield the items from `start` on in slices of about `size` bytes of JSON and a limited number of items."""
    most = SLICE if size < READY_SLICE_BYTES else MANY
    some: list[Item] = []
    taken = 0
    for item in items[start:] if start else items:
        some.append(item)
        taken += len(item.body)
        if taken >= size or len(some) == most:
            yield some
            some, taken = [], 0
    if some:
        yield some


_PARTIAL_LIST: Final = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/%b","metadata":%b,"items":'

_IsMuch = Callable[[Sequence[Item]], bool]


def _weighing(listing: Listing, *, always: bool) -> _IsMuch:
    """Return a function that is True for slices whose encoding takes long: those with a large object, or `always`."""
    any_large = listing.any_large

    def is_much(some: Sequence[Item]) -> bool:
        return always or (any_large and any(is_large(item.body) for item in some))

    return is_much


def _is_joined(some: Sequence[Item]) -> bool:
    """Return False: joining stored bodies takes no time worth offloading."""
    return False


# JSON and YAML


def _bodies(scope: Scope, listing: Listing) -> list[bytes]:
    """Return a list of cached bodies as pieces of JSON."""
    start, end = scope.kind.list_ends(_metadata(listing))
    items = listing.items
    if not items:
        return [start + end + b"\n"]
    pieces = [b",{"] * (2 * len(items) + 1)
    pieces[0] = start + b"{"
    pieces[1::2] = [item.body for item in items]
    pieces[-1] = end + b"\n"
    return pieces


class _Document(NamedTuple):
    """A list as JSON: the text before and after the items of `key`.

    `values` returns the JSON of a slice of items, separated by commas.
    """

    start: bytes
    end: bytes
    key: bytes
    values: Callable[[Sequence[Item]], bytes]

    @property
    def shell(self) -> bytes:
        """The document of a list without items."""
        return self.start + self.end


class _Text(NamedTuple):
    """A document in its sent form: the text before, between and after the slices, and the encoder of a slice."""

    head: bytes
    between: bytes
    tail: bytes
    render: Callable[[Sequence[Item]], bytes]


async def _document_response(scope: Scope, request: Request, listing: Listing, wanted: Representation) -> Response:
    """Return the list as JSON or YAML: whole if it is short, else as a stream of slices."""
    document = _document(scope, request, listing, wanted)
    media, items = wanted.media, listing.items
    as_stored = media == JSON and not (wanted.as_kind or wanted.pretty or scope.other)
    is_much = _is_joined if as_stored else _weighing(listing, always=scope.resource.columns_take_long)
    if media == YAML:
        size = YAML_SLICE_BYTES
    else:
        size = READY_SLICE_BYTES if as_stored else SLICE_BYTES
    slices = slices_of(items, size)
    first: Sequence[Item] = next(slices, ())
    if not items:
        return encoded_response(document.shell, wanted)
    if len(first) == len(items):
        return await offload_if(is_much(items), _whole, document, items, wanted)
    text = _as_yaml(document) if media == YAML else (_as_pretty if wanted.pretty else _as_compact)(document)
    made = [text.head, await offload_if(is_much(first), text.render, first)]
    size = len(made[1])
    response = Response(200, [YAML_TYPE if media == YAML else JSON_TYPE], made)
    for some in slices:
        if size > WHOLE:
            response.body = StreamedBody(_stream(made, some, slices, text, is_much, current()))
            return response
        await next_slice(_FEW)
        made += text.between, await offload_if(is_much(some), text.render, some)
        size += len(made[-1])
    made.append(text.tail)
    return response


def _document(scope: Scope, request: Request, listing: Listing, wanted: Representation) -> _Document:
    if wanted.as_kind == "Table":
        return _table(scope, request, listing, wanted)
    return _list(scope, listing, wanted)


async def _audited(scope: Scope, request: Request, listing: Listing, wanted: Representation) -> list[bytes]:
    """Return the whole list as compact JSON, in pieces, for the audit event, regardless of the client's form."""
    if not wanted.as_kind and scope.other is None:
        return _bodies(scope, listing)
    document = _document(scope, request, listing, wanted)
    if not listing.items:
        return [document.shell]
    is_much = _weighing(listing, always=scope.resource.columns_take_long)
    pieces = [document.start]
    for some in slices_of(listing.items, SLICE_BYTES):
        if len(pieces) > 1:
            pieces.append(b",")
            await next_slice(_FEW)
        pieces.append(await offload_if(is_much(some), document.values, some))
    pieces.append(document.end)
    return pieces


def _whole(document: _Document, items: Sequence[Item], wanted: Representation) -> Response:
    return encoded_response(document.start + document.values(items) + document.end, wanted)


async def _stream(
    made: list[bytes],
    some: Sequence[Item],
    slices: Iterator[Sequence[Item]],
    text: _Text,
    is_much: _IsMuch,
    account: Account,
) -> AsyncGenerator[bytes, None]:
    """Yield the finished pieces, then the rest as the client reads: the objects `some` and the remaining `slices`."""
    yield b"".join(made)
    made.clear()
    yield text.between + await account.offload_if(is_much(some), text.render, some)
    for some in slices:
        await next_slice(_FEW, account)
        yield text.between + await account.offload_if(is_much(some), text.render, some)
    yield text.tail


def _list(scope: Scope, listing: Listing, wanted: Representation) -> _Document:
    metadata = _metadata(listing)
    opening = b"{"
    start, end = scope.kind.list_ends(metadata)
    body: Callable[[Item], bytes] = scope.body
    as_stored = scope.other is None and not wanted.as_kind
    if wanted.as_kind:
        version = wanted.as_version.encode()
        opening = PARTIAL % version
        body = partial(partial_body, scope)
        start, end = _PARTIAL_LIST % (version, encode_in_order(metadata)), b"]}"
        if listing.items:
            start += b"["
        else:
            end = b"null}"

    between = b"," + opening

    def values(items: Sequence[Item]) -> bytes:
        return opening + between.join([item.body for item in items] if as_stored else map(body, items))

    return _Document(start, end, b"items", values)


def _table(scope: Scope, request: Request, listing: Listing, wanted: Representation) -> _Document:
    including = include_object(request)
    table = table_of(scope, (), wanted, including)
    table["metadata"] = _metadata(listing)

    def values(items: Sequence[Item]) -> bytes:
        return encode_in_order(rows_of(scope, items, wanted, including))[1:-1]

    return _Document(encode_in_order(table)[:-2], b"]}", b"rows", values)


def _as_compact(document: _Document) -> _Text:
    return _Text(document.start, b",", document.end + b"\n", document.values)


def _as_pretty(document: _Document) -> _Text:
    """Return the indented form; a slice is indented as in a document of its own."""
    before, after = b'\n  "%b": [' % document.key, b"\n  ]"
    head, _, tail = pretty(document.shell).rpartition(before + b"]")
    start, end = len(b"{" + before), -len(after + b"\n}")

    def render(items: Sequence[Item]) -> bytes:
        return pretty(b'{"%b":[%b]}' % (document.key, document.values(items)))[start:end]

    return _Text(head + before, b",", after + tail, render)


def _as_yaml(document: _Document) -> _Text:
    from steersman.machinery.codec.yaml import from_json  # most servers are never asked for any

    before = document.key + b":\n"
    head, _, tail = from_json(document.shell).partition(b"\n%b: []\n" % document.key)

    def render(items: Sequence[Item]) -> bytes:
        return from_json(b'{"%b":[%b]}' % (document.key, document.values(items)))[len(before) :]

    return _Text(head + b"\n" + before, b"", tail, render)


# Protobuf


async def _protobuf_response(scope: Scope, request: Request, listing: Listing, wanted: Representation) -> Response:
    """Return the list as protobuf, joined from the messages of its items.

    The document begins with its length, so every message has to be encoded before the first byte is sent. The messages
    of a long list are cached with the objects or kept compressed; messages beyond `KEPT` bytes are encoded again for
    sending.
    """
    gvk = scope.gvk._replace(kind=scope.kind.list_name)
    message: _Message = scope.protobuf
    if wanted.as_kind:
        gvk = GroupVersionKind(META_GROUP, wanted.as_version, "PartialObjectMetadataList")
        message = partial(_partial_message, scope)
    metadata = ListMeta(resource_version=str(listing.revision), continue_=listing.continue_token)
    if listing.continue_token and listing.remaining:
        metadata.remaining_item_count = listing.remaining
    start = protobuf.list_head(metadata)
    size = len(start)
    remembered_size = REPRESENTATIONS_LIMIT if wanted.as_kind else 0
    messages: list[list[bytes]] = []
    packed: list[bytes] = []
    packed_size = 0
    made = kept = 0
    is_much, account = _weighing(listing, always=False), current()
    for some in slices_of(listing.items, SLICE_BYTES):
        if made:
            await next_slice(_FEW)
        made += len(some)
        # a larger list would evict its own beginning from the cache, each time again
        remember = remembered_size < REPRESENTATIONS_LIMIT
        found = await offload_if(is_much(some), _messages, message, some, remember)
        size += sum(map(protobuf.list_item_size, found))
        if remember:
            remembered_size += sum(map(len, found)) + sum([len(item.body) for item in some])
        if remember or size <= WHOLE:
            messages.append(found)
        elif packed_size < KEPT:
            packed.append(deflate.compress(_joined(found)))
            packed_size += len(packed[-1])
        else:
            continue
        kept = made
    head, tail = protobuf.envelope_ends(gvk, size)
    if size <= WHOLE:
        return Response(200, [PROTOBUF_TYPE], [head, start, *map(_joined, messages), tail])

    async def stream() -> AsyncGenerator[bytes, None]:
        yield head + start
        for found in messages:
            yield _joined(found)
        packed.reverse()
        while packed:
            yield deflate.decompress(packed.pop())
        for some in slices_of(listing.items, SLICE_BYTES, kept):
            yield _joined(await account.offload_if(is_much(some), _messages, message, some, False))
            await next_slice(_FEW, account)
        yield tail

    return Response(200, [PROTOBUF_TYPE], StreamedBody(stream()))


class _Message(Protocol):
    def __call__(self, item: Item, *, remember: bool) -> bytes: ...


def _messages(message: _Message, items: Sequence[Item], remember: bool) -> list[bytes]:
    return [message(item, remember=remember) for item in items]


def _joined(messages: Sequence[bytes]) -> bytes:
    """Return a slice of a list's message, from the messages of its items."""
    return b"".join(map(protobuf.list_item, messages))


def _partial_message(scope: Scope, item: Item, *, remember: bool) -> bytes:
    """Return the message of an object's metadata; it is never cached."""
    return protobuf.encode_body(PartialObjectMetadata(metadata=scope.row_object(item).metadata))
