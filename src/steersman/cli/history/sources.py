"""Sources of history: a server that serves /debug/history, or any API server, by its watches and exact lists."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal, Required, TypedDict
from urllib.parse import urlencode

import msgspec

from steersman.cli.history.points import is_time
from steersman.client.api_resource import APIResource
from steersman.client.client import Client, checked, decoded
from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.machinery.errors.status import StatusError
from steersman.server.history.entries import changes_of, hidden, managers_of
from steersman.work.patterns import late_pattern

PATH: Final = "/debug/history"
_PAGE: Final = 500
_WATCH_SECONDS: Final = 2
"""Seconds of a watch that reads past events."""
_TOO_OLD: Final = late_pattern(r"too old resource version: [0-9]+ \(([0-9]+)\)", re.ASCII)
_ATTEMPTS: Final = 3
_MOST_EVENTS: Final = 10_000
"""Most events that are kept of a watch."""

Entry = dict[str, Any]
"""An entry of history, as /debug/history serves it."""

_Revision = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,20}\Z")]


_Type = Literal["ADDED", "MODIFIED", "DELETED"]


class _Change(TypedDict, total=False):
    path: Required[str]
    op: Required[Literal["added", "removed", "changed", "ordered"]]


class _Metadata(TypedDict, total=False):
    name: Required[str]
    namespace: str
    resourceVersion: Required[_Revision]


class _Object(TypedDict):
    metadata: _Metadata


class _Entry(TypedDict, total=False):
    """The members of an entry that are shown."""

    revision: Required[_Revision]
    type: Required[_Type]
    namespace: str
    name: Required[str]
    time: str
    verb: str
    subresource: str
    user: str
    userAgent: str
    auditID: str
    managers: list[str]
    changes: list[_Change]
    moreChanges: int
    unreadable: str
    object: dict[str, Any]


_Page = TypedDict("_Page", {"items": Required[list[_Entry]], "continue": str}, total=False)


class _Summary(TypedDict, total=False):
    records: bool


class _AtTime(TypedDict):
    revision: _Revision


class _ListMetadata(TypedDict):
    resourceVersion: _Revision


class _ListHead(TypedDict):
    metadata: _ListMetadata


class _List(TypedDict, total=False):
    items: list[_Object] | None


class NoHistory(Exception):
    """The error of a server that cannot answer a question about history. The text is one line."""


class Source(ABC):
    """History of a cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @abstractmethod
    async def entries(
        self, resource: APIResource[Any], namespace: str, name: str, limit: int, *, objects: bool, secrets: bool
    ) -> list[Entry]:
        """Return the newest writes of an object, or of a collection without a name, newest first."""

    @abstractmethod
    async def object_at(
        self, resource: APIResource[Any], namespace: str, name: str, point: str, *, secrets: bool
    ) -> bytes:
        """Return an object as JSON as it was at a point."""

    @abstractmethod
    async def revision_at(self, time: str) -> int:
        """Return the newest revision at a time."""

    async def revision(self, point: str) -> int:
        """Return the revision of a point. Raises NoHistory for one of the future."""
        if is_time(point):
            return await self.revision_at(point)
        newest = await self.newest_revision()
        if point == "now":
            return newest
        if int(point) > newest:
            raise NoHistory(f"revision {point} is in the future: the newest one is {newest}")
        return int(point)

    async def newest_revision(self) -> int:
        """Return the newest revision."""
        listed = checked(await self.client.get_plain("/api/v1/namespaces?limit=1"), _ListHead)
        return int(listed["metadata"]["resourceVersion"])


class ServedHistory(Source):
    """History of a server that serves it."""

    async def entries(
        self, resource: APIResource[Any], namespace: str, name: str, limit: int, *, objects: bool, secrets: bool
    ) -> list[Entry]:
        """Return the entries, page by page."""
        found: list[Entry] = []
        token = ""
        while len(found) < limit:
            query = {
                "limit": min(limit - len(found), _PAGE),
                "continue": token,
                "objects": "true" if objects else "",
                "secrets": "true" if secrets else "",
            }
            page = checked(await self.client.get_plain(_target(resource.path(namespace, name), **query)), _Page)
            found += page["items"]
            if not (token := page.get("continue", "")) or not page["items"]:
                break
        return found

    async def object_at(
        self, resource: APIResource[Any], namespace: str, name: str, point: str, *, secrets: bool
    ) -> bytes:
        """Return the object that the server has of that point."""
        at = {"time": point} if is_time(point) else {"revision": str(await self.revision(point))}
        query = {**at, "secrets": "true" if secrets else ""}
        data = await self.client.request("GET", _target(resource.path(namespace, name), **query))
        checked(await decoded(decode_plain, data), _Object)
        return data

    async def revision_at(self, time: str) -> int:
        """Return the revision that the server has of that time."""
        return int(checked(await self.client.get_plain(_target("", time=time)), _AtTime)["revision"])


def _target(path: str, **query: object) -> str:
    present = {name: value for name, value in query.items() if value != ""}
    return f"{PATH}{path}?{urlencode(present)}" if present else f"{PATH}{path}"


class WatchedHistory(Source):
    """History as far as any API server keeps it for watches and exact lists. Times and users of writes are unknown."""

    async def entries(
        self, resource: APIResource[Any], namespace: str, name: str, limit: int, *, objects: bool, secrets: bool
    ) -> list[Entry]:
        """Return entries made of the events of a watch from the oldest revision that the server has."""
        hides = resource.plural == "secrets" and not resource.group and not secrets
        before: dict[tuple[str, str], dict[str, Any]] = {}
        found: list[Entry] = []
        async for kind, obj in self._events(resource, namespace, name):
            meta = obj["metadata"]
            key = (meta.get("namespace", ""), meta["name"])
            entry: Entry = {"revision": meta["resourceVersion"], "type": kind, "name": key[1]}
            if key[0]:
                entry["namespace"] = key[0]
            previous = before.pop(key, None)
            if kind != "DELETED":
                before[key] = obj
                entry["managers"] = managers_of(previous or {}, obj)
                if previous is not None:
                    entry |= changes_of(previous, obj, hides=hides)
                if objects:
                    entry["object"] = hidden(obj) if hides else obj
            found.append(entry)
            if len(found) > _MOST_EVENTS:
                del found[0]
        if not found and name:
            obj = checked(await self.client.get_plain(resource.path(namespace, name)), _Object)
            shown = {"object": hidden(obj) if hides else obj} if objects else {}
            found = [{"revision": obj["metadata"]["resourceVersion"], "type": "MODIFIED", "name": name, **shown}]
        return found[::-1][:limit]

    async def _events(
        self, resource: APIResource[Any], namespace: str, name: str
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield types and objects of the events that the server still has."""
        plain = APIResource(resource.group, resource.version, resource.plural, resource.kind, dict, resource.namespaced)
        selector = f"metadata.name={name}" if name else ""
        since = "1"
        newest = await self._newest_version(resource, namespace, name)
        for _ in range(_ATTEMPTS):
            try:
                async with self.client.watch(
                    plain, namespace, resource_version=since, field_selector=selector, seconds=_WATCH_SECONDS
                ) as batches:
                    async for batch in batches:
                        for each in batch:
                            if each.type == "BOOKMARK":
                                continue
                            yield checked(each.type, _Type), checked(each.object, _Object)
                            if each.object["metadata"]["resourceVersion"] == newest:
                                return
                return
            except StatusError as error:
                oldest = _TOO_OLD.search(error.message)
                if error.code != 410 or oldest is None:
                    raise
                since = oldest[1]
        raise NoHistory("the server compacts its history faster than it can be read")

    async def _newest_version(self, resource: APIResource[Any], namespace: str, name: str) -> str:
        """Return the version of an object, after which a watch has nothing more to say; "" if that is not known."""
        if not name:
            return ""
        try:
            obj = checked(await self.client.get_plain(resource.path(namespace, name)), _Object)
        except StatusError as error:
            if error.code != 404:
                raise
            return ""
        return str(obj["metadata"]["resourceVersion"])

    async def object_at(
        self, resource: APIResource[Any], namespace: str, name: str, point: str, *, secrets: bool
    ) -> bytes:
        """Return the object from an exact list."""
        query = {
            "fieldSelector": f"metadata.name={name}",
            "resourceVersion": await self.revision(point),
            "resourceVersionMatch": "Exact",
        }
        data = await self.client.request("GET", f"{resource.path(namespace)}?{urlencode(query)}")
        listed = checked(await decoded(decode_plain, data), _List)
        for obj in listed.get("items") or ():
            whole = {"kind": resource.kind, "apiVersion": resource.api_version, **obj}
            hides = resource.plural == "secrets" and not resource.group and not secrets
            return encode_in_order(hidden(whole) if hides else whole)
        raise NoHistory(f"{resource.plural} {name!r} did not exist at that revision")

    async def revision_at(self, time: str) -> int:
        """Raise NoHistory."""
        raise NoHistory("this server does not tell when a revision was written: use a revision in place of a time")


async def source_of(client: Client) -> tuple[Source, str]:
    """Return the source of history of a server, and a note for the user if it is less than /debug/history has."""
    try:
        summary = checked(await client.get_plain(PATH), _Summary)
    except StatusError as error:
        if error.code not in (403, 404):
            raise
        why = "may not be read by this user" if error.code == 403 else "is not served"
        return WatchedHistory(client), f"{PATH} {why}: this is what the API server keeps for watches"
    note = "" if summary.get("records") else "this server does not record the times and origins of writes (--history)"
    return ServedHistory(client), note
