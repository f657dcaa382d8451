"""Handlers of /debug/history, and of an object's or a collection's path below it.

Authorized as non-resource paths, and in addition as the read of the object or collection that a path names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from steersman.endpoints.query import checked_flag
from steersman.endpoints.request import Request
from steersman.endpoints.responses import JSON_TYPE, long_error_response, method_not_allowed, not_found_text
from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.machinery.errors.go_numbers import NumError, parse_uint
from steersman.machinery.errors.status import StatusError, bad_request, expired, too_large_resource_version
from steersman.machinery.large_work.sizes import is_large
from steersman.machinery.values.times import TimeError, parse
from steersman.net.message import Response
from steersman.server.history.entries import Write, entry, hidden, joined
from steersman.server.history.subjects import Removed, Subject, subject_of
from steersman.server.server import Server
from steersman.storage.interface import Changes, Compacted, KeyValue, Storage
from steersman.store.storage_errors import available
from steersman.work.offloading import offload_if
from steersman.work.yielding import time_sliced

PREFIX: Final = "/debug/history"
_PAGE: Final = 100
_LARGEST_PAGE: Final = 500
_LONGEST: Final = 100
"""Characters of a parameter."""
_LARGE: Final = 64 << 10
"""Bytes of a page from which it is put together in a worker thread."""
_UNREADABLE: Final = "the stored value is encrypted, and cannot be decrypted"


class HistoryPaths(Struct, frozen=True):
    """The handlers on a server and its storage. `bounds` is the retention of history as text, "" if it has none."""

    server: Server
    storage: Storage
    removed: Removed
    kind: str
    bounds: str

    async def answer(self, request: Request) -> Response:
        """Return the answer to a GET; errors as a Status."""
        try:
            if request.method not in ("GET", "HEAD"):
                raise method_not_allowed()
            return await (self._summary(request) if request.info.path == PREFIX else self._below(request))
        except StatusError as error:
            return await long_error_response(request, error)

    async def _summary(self, request: Request) -> Response:
        """Answer with the bounds of history, or the revision at a time."""
        storage = self.storage
        moment = _parameter(request, "time")
        if moment:
            revision = await self._revision_at(moment)
            return _json(encode_in_order({"revision": str(revision)}))
        found: dict[str, Any] = {
            "storage": self.kind,
            "records": storage.keeps_records,
            "bounds": self.bounds,
            "oldestRevision": str(max(storage.compact_revision, 1)),
            "newestRevision": str(await available(storage.current_revision())),
        }
        return _json(encode_in_order(found))

    async def _below(self, request: Request) -> Response:
        """Answer with writes, or with an object at a revision or time."""
        path = request.path.removeprefix(PREFIX)
        if path == request.path:
            return not_found_text()
        server = self.server
        authorizer = server.config.authorizer
        subject = await subject_of(request, path, server.catalogue, authorizer, self.storage, self.removed)
        shows_secrets = checked_flag("secrets", _parameter(request, "secrets"))
        revision = await self._requested_revision(request)
        if revision is not None and subject.is_key:
            return await self._object_at(request, subject, revision, hides=subject.is_secret and not shows_secrets)
        if revision is not None:
            raise bad_request("list a collection at a revision by its own path, with resourceVersionMatch=Exact")
        return await self._page(request, subject, hides=subject.is_secret and not shows_secrets)

    async def _requested_revision(self, request: Request) -> int | None:
        """Return the revision in the query, or the newest one at the time in it; None without both."""
        text, moment = _parameter(request, "revision"), _parameter(request, "time")
        if text and moment:
            raise bad_request("revision and time exclude each other")
        if moment:
            return await self._revision_at(moment)
        if not text:
            return None
        if not (revision := _number("revision", text)):
            raise bad_request("revision must be above 0")
        return revision

    async def _revision_at(self, text: str) -> int:
        """Return the newest revision at a time. Raises StatusError 400, and 410 if it is not known."""
        if not self.storage.keeps_records:
            raise bad_request("this server does not keep the times of writes (--history)")
        try:
            moment = parse(text)
        except TimeError as error:
            raise bad_request(f"time: {error}") from None
        revision = await available(self.storage.revision_at(moment.timestamp()))
        if not revision:
            raise expired(f"history does not reach back to {text}")
        return revision

    async def _object_at(self, request: Request, subject: Subject, revision: int, *, hides: bool) -> Response:
        """Answer with the object as it was at a revision."""
        storage = subject.storage
        if revision > storage.revision:
            raise too_large_resource_version(revision, storage.revision)
        try:
            found = await available(storage.get(subject.prefix, revision=revision))
        except Compacted as error:
            raise expired(f"revision {revision} is older than history, which begins at {error.revision}") from None
        if found is None:
            raise subject.not_found()
        (body,) = await subject.bodies(request, [found])
        if not body:
            raise StatusError(500, "InternalError", _UNREADABLE)
        if hides:
            body = await offload_if(is_large(body), _hidden, body)
        return _json(body + b"\n")

    async def _page(self, request: Request, subject: Subject, *, hides: bool) -> Response:
        """Answer with a page of writes, newest first."""
        limit = min(_number("limit", _parameter(request, "limit") or "0") or _PAGE, _LARGEST_PAGE)
        before = _number("continue", _parameter(request, "continue") or "0")
        storage = subject.storage
        found = await available(storage.history(subject.prefix, is_key=subject.is_key, before=before, limit=limit))
        if subject.is_key and not found.items and not before:
            raise subject.not_found()
        head: dict[str, Any] = {
            "records": storage.keeps_records,
            "oldestRevision": str(max(storage.compact_revision, 1)),
            "newestRevision": str(storage.revision),
        }
        if found.more:
            head["continue"] = str(found.items[-1].event.revision)
        with_object = checked_flag("objects", _parameter(request, "objects"))
        entries = []
        async for write in time_sliced(await _writes(request, subject, found)):
            size = (write.before or b"") + (write.after or b"")
            entries.append(await offload_if(is_large(size), entry, write, hides=hides, with_object=with_object))
        return _json(await offload_if(sum(map(len, entries)) > _LARGE, joined, head, iter(entries)))


async def answer(
    server: Server, storage: Storage, removed: Removed, kind: str, bounds: str, request: Request
) -> Response:
    """Return the answer to a request for a path of history; the other parameters are those of HistoryPaths."""
    return await HistoryPaths(server, storage, removed, kind, bounds).answer(request)


async def _writes(request: Request, subject: Subject, found: Changes) -> list[Write]:
    """Return the writes of a page with their bodies in the requested version."""
    values: list[KeyValue] = []
    for each in found.items:
        values += [value for value in (each.event.current, each.event.previous) if value is not None]
    unique = {id(each): each for each in values}
    bodies, why = await _bodies(request, subject, list(unique.values()))
    by_id = dict(zip(unique, bodies, strict=True))
    writes = []
    for each in found.items:
        before, after = (
            None if value is None else by_id[id(value)] for value in (each.event.previous, each.event.current)
        )
        namespace, name = subject.names(each.event.key)
        unreadable = why or (_UNREADABLE if b"" in (before, after) else "")
        writes.append(Write(each, before, after, namespace, name, unreadable))
    return writes


async def _bodies(request: Request, subject: Subject, values: Sequence[KeyValue]) -> tuple[list[bytes], str]:
    """Return the bodies of values; empty ones, and why, if the values cannot be converted."""
    try:
        return await subject.bodies(request, values), ""
    except StatusError as error:
        return [b""] * len(values), error.message


def _hidden(body: bytes) -> bytes:
    return encode_in_order(hidden(decode_plain(body)))


def _parameter(request: Request, name: str) -> str:
    text = request.parameter(name) or ""
    if len(text) > _LONGEST:
        raise bad_request(f"{name} may have {_LONGEST} characters")
    return text


def _number(name: str, text: str) -> int:
    try:
        return min(parse_uint(text), (1 << 63) - 1)
    except NumError as error:
        raise bad_request(f"{name}: {error}") from None


def _json(body: bytes) -> Response:
    return Response(200, [JSON_TYPE, ("x-content-type-options", "nosniff")], body)
