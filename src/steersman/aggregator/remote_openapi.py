"""The OpenAPI documents of the servers behind APIServices: fetched, and again every minute.

Follows kube-aggregator's `controllers/openapi` and `controllers/openapiv3`. v2 documents are fetched and merged into
that of this server. Of v3 documents only the index is fetched, and clients' requests for them are forwarded to the
server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from hashlib import sha512
from typing import Final

import msgspec

from steersman.aggregator.backend import Backend, Unreachable
from steersman.aggregator.remote_service import Registration
from steersman.aggregator.service_resolver import NoRoute
from steersman.authentication.user import UserInfo
from steersman.endpoints.request import Request
from steersman.machinery.codec.serializer import decode_plain, encode
from steersman.net.message import Response
from steersman.openapi.converting import as_v3
from steersman.openapi.merging import below
from steersman.openapi.protobuf import check_document
from steersman.openapi.remote import RemoteDocument, RemoteDocuments, RemoteIndex
from steersman.openapi.v2_messages import DOCUMENT as V2_DOCUMENT
from steersman.work.offloading import offload_if
from steersman.work.work_queue import TryLater, WorkQueue

logger = logging.getLogger(__name__)

REFRESH: Final = 60.0
LONGEST: Final = 3600.0
MAX_DOCUMENT: Final = 32 << 20
"""Bytes of a document; a longer document is an error."""
MAX_INDEX: Final = 1 << 20
"""Bytes of an index of documents, which becomes part of this server's index."""
_TIMEOUT: Final = 60.0
DELAY: Final = 1.0
_USER: Final = UserInfo("system:aggregator")


class RemoteOpenAPI:
    """Keeps `documents` up to date."""

    def __init__(self, documents: RemoteDocuments, backends: Callable[[str], Backend | None]) -> None:
        self._documents = documents
        self._backends = backends
        self._registrations: dict[str, Registration] = {}
        self._etags: dict[str, tuple[str, bytes]] = {}
        """ETag and digest of the last v2 document, by APIService."""
        self._without_v3: set[str] = set()
        """APIServices of servers without v3 documents, whose v3 documents are converted from v2."""
        self._delay = 0.0
        """Seconds between a change of an APIService and the request; 0 before the start."""
        self._v2: WorkQueue[str] = WorkQueue(base_delay=REFRESH, max_delay=LONGEST)
        self._v3: WorkQueue[str] = WorkQueue(base_delay=REFRESH, max_delay=LONGEST)

    def start(self) -> None:
        """Start fetching."""
        self._delay = DELAY
        self._v2.start(self._sync_v2, name="OpenAPI v2", workers=1)
        self._v3.start(self._sync_v3, name="OpenAPI v3", workers=1)

    async def stop(self) -> None:
        """Stop, and return once no request runs any more."""
        await self._v2.stop()
        await self._v3.stop()

    def changed(self, name: str, registration: Registration | None) -> None:
        """Handle a changed APIService of another server; None if there is no such APIService any more."""
        before = self._registrations.pop(name, None)
        if registration is None:
            if before is not None:
                self._forget(name)
            return
        self._registrations[name] = registration
        if registration.is_available and (before is None or not before.is_available or before != registration):
            for queue in (self._v2, self._v3):
                queue.discard(name)
                queue.add_after(name, self._delay)

    def _forget(self, name: str) -> None:
        self._v2.discard(name)
        self._v3.discard(name)
        self._etags.pop(name, None)
        self._without_v3.discard(name)
        documents, document = self._documents, _document_name(name)
        gone = [documents.v2.pop(name, None), documents.v3.pop(name, None), documents.converted.pop(document, None)]
        if any(each is not None for each in gone):
            self._documents.changes += 1

    async def _sync_v2(self, name: str) -> float | None:
        """Fetch the v2 document of an APIService. Raises TryLater on a failure, which keeps the last document."""
        backend, registration = self._backends(name), self._registrations.get(name)
        if backend is None or registration is None:
            return None
        etag, known = self._etags.get(name, ("", b""))
        headers = [("Accept", "application/json")]
        if etag:
            headers.append(("If-None-Match", etag))
        try:
            answer = await backend.fetch("/openapi/v2", _USER, headers, limit=MAX_DOCUMENT, seconds=_TIMEOUT)
        except (Unreachable, NoRoute) as error:
            raise TryLater(str(error)) from None
        if answer.status == 304 and etag:
            await self._convert(name)
            return REFRESH
        if answer.status != 200 or answer.body is None:
            raise TryLater(f"failed to retrieve openAPI spec, http error: {answer.status}")
        prefix = f"{registration.root}/"
        try:
            data, digest = await offload_if(True, read_part, answer.body, prefix, known)
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise TryLater(f"the document cannot be parsed: {error}") from None
        if self._registrations.get(name) is None:
            return None
        self._etags[name] = answer.headers.get("etag", ""), digest
        if data is not None:
            self._documents.v2[name] = RemoteDocument(sha512(digest).hexdigest().upper(), data)
            self._documents.converted.pop(_document_name(name), None)
            self._order()
            self._documents.changes += 1
        await self._convert(name)
        return REFRESH

    async def _convert(self, name: str) -> None:
        """Convert the v2 document of an APIService to v3, if its server has no v3 documents and this has not been done."""
        document = _document_name(name)
        known = self._documents.v2.get(name)
        if known is None or name not in self._without_v3 or document in self._documents.converted:
            return
        data = await offload_if(True, _to_v3, known.data)
        if self._documents.v2.get(name) is known:
            self._documents.converted[document] = RemoteDocument(known.etag, data)

    def _order(self) -> None:
        """Sort the documents by priority, the highest first, and then by name."""
        groups: dict[str, int] = {}
        for each in self._registrations.values():
            groups[each.group] = max(groups.get(each.group, 0), each.group_priority)

        def sort_key(name: str) -> tuple[int, str]:
            registration = self._registrations.get(name)
            return (0 if registration is None else -groups[registration.group], name)

        known = self._documents.v2
        self._documents.v2 = {name: known[name] for name in sorted(known, key=sort_key)}

    async def _sync_v3(self, name: str) -> float | None:
        """Fetch the index of v3 documents of an APIService. Raises TryLater on a failure."""
        backend = self._backends(name)
        if backend is None or name not in self._registrations:
            return None
        try:
            answer = await backend.fetch("/openapi/v3", _USER, limit=MAX_INDEX, seconds=_TIMEOUT)
        except (Unreachable, NoRoute) as error:
            raise TryLater(str(error)) from None
        if answer.status == 404:
            self._without_v3.add(name)
            self._v2.add(name)
            return REFRESH
        if answer.status != 200 or answer.body is None:
            raise TryLater("Error, could not get list of group versions for APIService")
        try:
            urls = await offload_if(True, _urls, answer.body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise TryLater(f"the index of documents cannot be parsed: {error}") from None
        if name in self._registrations:
            self._without_v3.discard(name)
            self._documents.converted.pop(_document_name(name), None)
            self._documents.v3[name] = RemoteIndex(
                urls, partial(_answer, self._backends, name), partial(_fetch, self._backends, name, urls)
            )
        return REFRESH


async def _answer(backends: Callable[[str], Backend | None], name: str, request: Request) -> Response:
    backend = backends(name)
    assert backend is not None
    return await backend.answer(request)


async def _fetch(
    backends: Callable[[str], Backend | None], name: str, urls: dict[str, str], document: str
) -> bytes | None:
    backend = backends(name)
    if backend is None:
        return None
    headers = [("Accept", "application/json")]
    try:
        answer = await backend.fetch(urls[document], _USER, headers, limit=MAX_DOCUMENT, seconds=_TIMEOUT)
    except (Unreachable, NoRoute) as error:
        logger.info("the OpenAPI document %s cannot be fetched: %s", document, error)
        return None
    return answer.body if answer.status == 200 else None


def _document_name(name: str) -> str:
    """Return the name of the v3 document of an APIService."""
    version, _, group = name.partition(".")
    return f"apis/{group}/{version}"


def _to_v3(data: bytes) -> bytes:
    return encode(as_v3(decode_plain(data)))


def read_part(data: bytes, prefix: str, known: bytes) -> tuple[bytes | None, bytes]:
    """Return the part of a v2 document below a prefix, encoded, None if its digest is `known`; and its digest.

    Runs in a worker thread. Raises ValueError for an invalid document.
    """
    digest = sha512(data).digest()
    if digest == known:
        return None, digest
    document = decode_plain(data)
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    part = below(document, prefix)
    sections = {name: part.get(name) for name in ("paths", "definitions", "parameters")}
    valid = {name: each if isinstance(each, dict) else {} for name, each in sections.items()}
    found = valid | {"info": document.get("info", {})}
    check_document(V2_DOCUMENT, found)  # the part is merged into the document for all clients
    return encode(found), digest


class _DocumentURL(msgspec.Struct, rename={"server_relative_url": "serverRelativeURL"}):
    server_relative_url: str = ""


class _Index(msgspec.Struct):
    paths: dict[str, _DocumentURL] = {}


_INDEX: Final = msgspec.json.Decoder(_Index)


def _urls(data: bytes) -> dict[str, str]:
    return {name: each.server_relative_url for name, each in _INDEX.decode(data).paths.items()}
