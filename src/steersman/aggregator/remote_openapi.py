"""The OpenAPI documents of the servers behind APIServices: asked for, and again every minute.

Follows kube-aggregator's `controllers/openapi` and `controllers/openapiv3`. Documents of v2 are fetched and become part
of this server's; of v3 it is known which there are, and whoever wants one is passed on to the server.
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
"""Bytes of a document; a longer one is no answer."""
MAX_INDEX: Final = 1 << 20
"""Bytes of a list of documents, which is a part of the one that everybody gets."""
_TIMEOUT: Final = 60.0
_SOON: Final = 1.0
_WHO_ASKS: Final = UserInfo("system:aggregator")


class RemoteOpenAPI:
    """Keeps the `documents`. `start` begins, `stop` ends."""

    def __init__(self, documents: RemoteDocuments, backends: Callable[[str], Backend | None]) -> None:
        self._documents = documents
        self._backends = backends
        self._registrations: dict[str, Registration] = {}
        self._etags: dict[str, tuple[str, bytes]] = {}
        """Of v2 documents: what their server calls the state of one, and the digest of it."""
        self._without_v3: set[str] = set()
        """The servers of these have no documents of v3: theirs are made of v2."""
        self._pause = 0.0
        """Seconds after which an APIService that has changed is asked; those known at the start are asked at once."""
        self._v2: WorkQueue[str] = WorkQueue(base_delay=REFRESH, max_delay=LONGEST)
        self._v3: WorkQueue[str] = WorkQueue(base_delay=REFRESH, max_delay=LONGEST)

    def start(self) -> None:
        """Asks from now on."""
        self._pause = _SOON
        self._v2.start(self._sync_v2, name="OpenAPI v2", workers=1)
        self._v3.start(self._sync_v3, name="OpenAPI v3", workers=1)

    async def stop(self) -> None:
        """Returns once nobody is asked any more."""
        await self._v2.stop()
        await self._v3.stop()

    def changed(self, name: str, registration: Registration | None) -> None:
        """An APIService has changed, or there is none of this name that leads to another server."""
        before = self._registrations.pop(name, None)
        if registration is None:
            if before is not None:
                self._forget(name)
            return
        self._registrations[name] = registration
        if registration.is_available and (before is None or not before.is_available or before != registration):
            for queue in (self._v2, self._v3):
                queue.discard(name)
                queue.add_after(name, self._pause)

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
        """Raises TryLater for what cannot be had; what was known before stays."""
        backend, registration = self._backends(name), self._registrations.get(name)
        if backend is None or registration is None:
            return None
        etag, known = self._etags.get(name, ("", b""))
        headers = [("Accept", "application/json")]
        if etag:
            headers.append(("If-None-Match", etag))
        try:
            answer = await backend.fetch("/openapi/v2", _WHO_ASKS, headers, limit=MAX_DOCUMENT, seconds=_TIMEOUT)
        except (Unreachable, NoRoute) as error:
            raise TryLater(str(error)) from None
        if answer.status == 304 and etag:
            await self._convert(name)
            return REFRESH
        if answer.status != 200 or answer.body is None:
            raise TryLater(f"failed to retrieve openAPI spec, http error: {answer.status}")
        prefix = f"{registration.root}/"
        try:
            data, digest = await offload_if(True, _part, answer.body, prefix, known)
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise TryLater(f"the document cannot be read: {error}") from None
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
        """Makes the v3 document of an APIService of that of v2, if its server has none and it is not made yet."""
        document = _document_name(name)
        known = self._documents.v2.get(name)
        if known is None or name not in self._without_v3 or document in self._documents.converted:
            return
        data = await offload_if(True, _converted, known.data)
        if self._documents.v2.get(name) is known:
            self._documents.converted[document] = RemoteDocument(known.etag, data)

    def _order(self) -> None:
        """Puts the documents in order: the highest priority first, then by name."""
        groups: dict[str, int] = {}
        for each in self._registrations.values():
            groups[each.group] = max(groups.get(each.group, 0), each.group_priority)

        def place(name: str) -> tuple[int, str]:
            registration = self._registrations.get(name)
            return (0 if registration is None else -groups[registration.group], name)

        known = self._documents.v2
        self._documents.v2 = {name: known[name] for name in sorted(known, key=place)}

    async def _sync_v3(self, name: str) -> float | None:
        """Raises TryLater for what cannot be had."""
        backend = self._backends(name)
        if backend is None or name not in self._registrations:
            return None
        try:
            answer = await backend.fetch("/openapi/v3", _WHO_ASKS, limit=MAX_INDEX, seconds=_TIMEOUT)
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
            raise TryLater(f"the list of documents cannot be read: {error}") from None
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
        answer = await backend.fetch(urls[document], _WHO_ASKS, headers, limit=MAX_DOCUMENT, seconds=_TIMEOUT)
    except (Unreachable, NoRoute) as error:
        logger.info("the OpenAPI document %s cannot be had: %s", document, error)
        return None
    return answer.body if answer.status == 200 else None


def _document_name(name: str) -> str:
    """What the v3 document of an APIService is called."""
    version, _, group = name.partition(".")
    return f"apis/{group}/{version}"


def _converted(data: bytes) -> bytes:
    return encode(as_v3(decode_plain(data)))


def _part(data: bytes, prefix: str, known: bytes) -> tuple[bytes | None, bytes]:
    """The part of a v2 document below a prefix, encoded, and the digest of the document; None for the known one.

    Runs in a worker thread. Raises ValueError for what is no document.
    """
    digest = sha512(data).digest()
    if digest == known:
        return None, digest
    document = decode_plain(data)
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    part = below(document, prefix)
    sections = {name: part.get(name) for name in ("paths", "definitions", "parameters")}
    told = {name: each if isinstance(each, dict) else {} for name, each in sections.items()}
    found = told | {"info": document.get("info", {})}
    check_document(V2_DOCUMENT, found)  # it is a part of the document that everybody gets
    return encode(found), digest


class _Place(msgspec.Struct, rename={"server_relative_url": "serverRelativeURL"}):
    server_relative_url: str = ""


class _Index(msgspec.Struct):
    paths: dict[str, _Place] = {}


_INDEX: Final = msgspec.json.Decoder(_Index)


def _urls(data: bytes) -> dict[str, str]:
    return {name: each.server_relative_url for name, each in _INDEX.decode(data).paths.items()}
