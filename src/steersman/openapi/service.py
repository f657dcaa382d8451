"""The handlers of /openapi/v2 and /openapi/v3, as in kube-openapi and the aggregator.

Documents are built, encoded and compressed in worker threads at their first request; see `builder`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from typing import Final

import orjson

from steersman.endpoints.accept_encoding import rates_gzip
from steersman.endpoints.request import Request
from steersman.machinery.deflate import gzipped
from steersman.net.message import Response
from steersman.openapi.accept import JSON, PROTOBUF_V2, PROTOBUF_V3, Encoding, accepted, media_ranges
from steersman.openapi.builder import V2_ENDS, Document
from steersman.openapi.cache import EncodedDocuments
from steersman.openapi.content import serve_content
from steersman.openapi.documents import Documents, Parts, compute_etags
from steersman.openapi.fragments import (
    Fragments,
    Members,
    decoded,
    joined,
    members_of,
    members_v2,
    merged,
)
from steersman.openapi.merging import merge_document
from steersman.openapi.part_cache import PartCache
from steersman.openapi.protobuf import encode_document
from steersman.openapi.remote import RemoteDocuments
from steersman.openapi.schemas import Schemas
from steersman.openapi.sources import Source, etag_of
from steersman.openapi.v2_messages import DOCUMENT as V2_DOCUMENT
from steersman.openapi.v3_messages import DOCUMENT as V3_DOCUMENT
from steersman.server.server import Server
from steersman.work.offloading import offload_if

_KEPT_BYTES: Final = 8 * 1024 * 1024
_COMPRESS_FROM: Final = 1400
"""Bytes from which /openapi/v2 is compressed for a client that accepts gzip."""

_V3_PREFIX: Final = "/openapi/v3/"
_MESSAGES: Final = {PROTOBUF_V2: V2_DOCUMENT, PROTOBUF_V3: V3_DOCUMENT}


class OpenAPIService:
    """The OpenAPI documents of a server. Its methods run on the event loop."""

    def __init__(self, server: Server, remote: RemoteDocuments | None = None) -> None:
        self._server = server
        self._remote = remote or RemoteDocuments()
        self._remote_changes = self._remote.changes
        self._encoded = EncodedDocuments(_KEPT_BYTES)
        self._modified = datetime.now(UTC).replace(microsecond=0)
        self._changed: datetime | None = None
        self._documents = Documents(server)
        self._kept = PartCache()
        self._parts = Parts(self._kept)
        server.catalogue.subscribe(self._touch)

    def _touch(self, _: str = "") -> None:
        self._modified = self._changed = datetime.now(UTC).replace(microsecond=0)

    def _v3(self, name: str) -> Source | None:
        own: Source | None = self._documents.all().get(name)
        return own or self._remote.converted.get(name)

    async def _index(self) -> bytes:
        sources: dict[str, Source] = {**self._remote.converted, **self._documents.all()}
        await compute_etags(sources.values())
        urls = {name: url for index in self._remote.v3.values() for name, url in index.urls.items()}
        urls |= {name: _relative_url(name, source.etag) for name, source in sources.items()}
        return orjson.dumps({"paths": {name: {"serverRelativeURL": urls[name]} for name in sorted(urls)}})

    async def answer_index(self, request: Request) -> Response:
        """Answer /openapi/v3: the URL of every document, with a hash of its present state.

        kubectl caches the index by the second, without an ETag, and asks whether it has changed since.
        """
        headers = [("content-type", "text/plain; charset=utf-8")]
        data = await self._index()
        now = datetime.now(UTC).replace(microsecond=0)
        return serve_content(request, headers, data, now, changed=self._changed)

    async def answer_v3(self, request: Request) -> Response:
        """Answer /openapi/v3/NAME, cacheable forever if `hash` is the present state.

        Like upstream, an Accept header without any media type gets an empty 200 response.
        """
        name = request.info.path.removeprefix(_V3_PREFIX)
        source = self._v3(name)
        if source is None:
            remote = next((each for each in self._remote.v3.values() if name in each.urls), None)
            return Response(404) if remote is None else await remote.answer(request)
        vary = ("vary", "Accept")
        accept = request.headers.get("accept", "")
        encoding = accepted(accept, (JSON, PROTOBUF_V3))
        if encoding is None:
            return Response(406, [vary]) if media_ranges(accept) else Response(200)
        headers = [("content-type", encoding.content_type), vary]
        await compute_etags((source,))
        etag = source.etag
        if wanted := request.query.get("hash"):
            if wanted != etag:
                location = ("location", _relative_url(name, etag))
                return Response(301, [*headers, ("etag", f'"{etag}"'), location])
            headers += [("cache-control", "public, immutable"), ("expires", _in_a_year())]
        make = partial(offload_if, True, _encode, source, encoding, self._kept)
        data = await self._encoded.get((name, etag, encoding), make)
        return serve_content(request, headers, data, self._modified, f'"{etag}"')

    async def answer_v2(self, request: Request) -> Response:
        """Answer /openapi/v2: one document for everything, compressed if the client accepts gzip."""
        vary = [("vary", "Accept-Encoding"), ("vary", "Accept")]
        encoding = accepted(request.headers.get("accept", ""), (JSON, PROTOBUF_V2))
        if encoding is None:
            return Response(406, vary)
        if self._remote_changes != self._remote.changes:
            self._remote_changes = self._remote.changes
            self._touch()
        documents, others = self._documents.all(), tuple(self._remote.v2.values())
        await compute_etags(documents.values())
        sources: tuple[Source, ...] = (*documents.values(), *others)
        etag = etag_of(each.etag for each in sources)
        headers = [("content-type", encoding.content_type), *vary]
        make = partial(self._encode_v2, documents, others, encoding)
        data = await self._encoded.get(("", etag, encoding), make)
        response = serve_content(request, headers, data, self._modified, f'"{etag}"')
        body = response.body
        if type(body) is bytes and len(body) >= _COMPRESS_FROM and rates_gzip(request.headers):
            if body is data:
                zipped = partial(offload_if, True, gzipped, data)
                response.body = await self._encoded.get(("", etag, encoding, "gzip"), zipped)
            else:
                response.body = await offload_if(True, gzipped, body)
            response.headers.append(("content-encoding", "gzip"))
        return response

    async def _encode_v2(self, documents: dict[str, Document], others: tuple[Source, ...], encoding: Encoding) -> bytes:
        parts = await self._parts.of(documents)
        return await offload_if(True, _joined, parts, others, encoding)


def _joined(parts: list[Fragments], others: tuple[Source, ...], encoding: Encoding) -> bytes:
    whole = merged(parts)
    for each in others:
        whole = merge_document(whole, each.build())
    return _in_encoding(members_v2(whole, V2_ENDS), encoding)


def _encode(source: Source, encoding: Encoding, kept: PartCache) -> bytes:
    members = source.members(Schemas(kept)) if isinstance(source, Document) else members_of(source.build())
    return _in_encoding(members, encoding)


def _in_encoding(members: Members, encoding: Encoding) -> bytes:
    message = _MESSAGES.get(encoding)
    return joined(members) if message is None else encode_document(message, decoded(members))


def _relative_url(name: str, etag: str) -> str:
    return f"{_V3_PREFIX}{name}?hash={etag}"


def _in_a_year() -> str:
    now = datetime.now(UTC)
    try:
        then = now.replace(year=now.year + 1)
    except ValueError:  # 29 February
        then = now.replace(year=now.year + 1, month=3, day=1)
    return format_datetime(then, usegmt=True).replace("GMT", "UTC")
