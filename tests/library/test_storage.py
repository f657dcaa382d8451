"""Classes with a custom storage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

import steersman
from steersman import Event, ObjectMeta, PrinterColumn, Request, Server, mount, resource, version_of
from steersman.net.in_process import InProcessClient
from tests.library.requests import TOKEN, causes, send

TOLD: list[tuple[str, str]] = []


class Shelf:
    """A storage of books in a dictionary, by namespace and name; versions are consecutive numbers."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.books: dict[tuple[str, str], Book] = {}
        self.version = 0
        self.changed = asyncio.Event()
        self.log: list[tuple[int, Event[Book]]] = []
        self.opened, self.closed = asyncio.Event(), asyncio.Event()

    async def get(self, request: Request[Book]) -> Book | None:
        return self.books.get((request.metadata.namespace, request.metadata.name))

    async def list(self, request: Request[Book]) -> Iterable[Book]:
        return list(self.books.values())

    async def create(self, request: Request[Book], obj: Book) -> Book:
        if (obj.metadata.namespace, obj.metadata.name) in self.books:
            raise request.already_exists()
        return self._put("ADDED", obj)

    async def update(self, request: Request[Book], obj: Book) -> Book:
        return self._put("MODIFIED", obj)

    async def delete(self, request: Request[Book], obj: Book) -> None:
        del self.books[obj.metadata.namespace, obj.metadata.name]
        self._log("DELETED", obj)

    async def watch(self, request: Request[Book], resource_version: str) -> AsyncIterator[Event[Book]]:
        if resource_version and int(resource_version) > self.version:
            raise request.expired()
        at = int(resource_version or self.version)
        self.opened.set()
        try:
            while True:
                for number, event in [each for each in self.log if each[0] > at]:
                    at = number
                    yield event
                self.changed.clear()
                await self.changed.wait()
        finally:
            self.closed.set()

    def _put(self, kind: str, book: Book) -> Book:
        self.version += 1
        book.metadata.resource_version = str(self.version)
        self.books[book.metadata.namespace, book.metadata.name] = book
        self.log.append((self.version, Event(kind, book)))
        self.changed.set()
        return book

    def _log(self, kind: str, book: Book) -> None:
        self.version += 1
        book.metadata.resource_version = str(self.version)
        self.log.append((self.version, Event(kind, book)))
        self.changed.set()


SHELF = Shelf()


class BookSpec(msgspec.Struct):
    title: str
    pages: int = 100


class BookStatus(msgspec.Struct):
    lent: bool = False


@resource(
    "e.x/v1", storage=SHELF, printer_columns=[PrinterColumn("Title", ".spec.title")], selectable_fields=[".spec.title"]
)
class Book(msgspec.Struct):
    spec: BookSpec
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: BookStatus | None = None

    @steersman.validate
    def check(self, request: Request[Book]) -> Any:
        if self.spec.pages < 1:
            yield steersman.invalid(steersman.Path("spec", "pages"), self.spec.pages, "no book")

    @steersman.after_write
    def notify(self, request: Request[Book]) -> None:
        TOLD.append((request.operation, request.metadata.name))


class Adder:
    """A storage that answers posted objects and stores nothing."""

    async def create(self, request: Request[Sum], obj: Sum) -> Sum:
        obj.total = sum(obj.numbers)
        obj.asked_by = request.user.name
        return obj


@resource("e.x/v1", namespaced=False, storage=Adder())
@dataclass
class Sum:
    numbers: list[int] = field(default_factory=list)
    total: int = 0
    asked_by: str = ""


class Clock:
    """A storage of objects that are computed on request."""

    async def get(self, request: Request[Hour]) -> Hour | None:
        return next((each for each in await self.list(request) if each.metadata.name == request.metadata.name), None)

    async def list(self, request: Request[Hour]) -> list[Hour]:
        return [Hour(ObjectMeta(name=f"h{number}", labels={"half": "am"})) for number in range(3)]


@resource("e.x/v1", namespaced=False, storage=Clock())
class Hour(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


BOOKS = "/apis/e.x/v1/namespaces/default/books"
MERGE = "application/merge-patch+json"


def book(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "e.x/v1", "kind": "Book", "metadata": {"name": name}, "spec": {"title": name, **spec}}


@pytest.fixture
async def server(serve: Any) -> Server:
    SHELF.clear()
    TOLD.clear()
    found: Server = await serve(Book, Sum, Hour)
    return found


async def test_the_verbs_are_those_that_the_storage_has(server: Server) -> None:
    resources = (await send(server, "GET", "/apis/e.x/v1")).json()["resources"]
    assert {each["name"]: sorted(each["verbs"]) for each in resources} == {
        "books": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "books/status": ["get", "patch", "update"],
        "sums": ["create"],
        "hours": ["get", "list"],
    }
    assert (await send(server, "DELETE", "/apis/e.x/v1/hours/h1")).status == 405


async def test_objects_are_made_judged_and_changed_as_others_are(server: Server) -> None:
    made = await send(server, "POST", BOOKS, book("a"))
    assert (made.status, made.json()["spec"]) == (201, {"title": "a", "pages": 100})
    metadata = made.json()["metadata"]
    assert metadata["resourceVersion"] == "1"
    assert metadata["uid"]
    assert (await send(server, "POST", BOOKS, book("a"))).status == 409
    assert causes(await send(server, "POST", BOOKS, book("b", pages=0))) == [
        ("spec.pages", "Invalid value: 0: no book")
    ]
    changed = await send(server, "PATCH", f"{BOOKS}/a", {"spec": {"pages": 7}, "status": {"lent": True}}, media=MERGE)
    assert (changed.json()["spec"]["pages"], "status" in changed.json()) == (7, False)
    assert changed.json()["metadata"]["generation"] == 2
    lent = await send(server, "PATCH", f"{BOOKS}/a/status", {"status": {"lent": True}}, media=MERGE)
    assert lent.json()["status"] == {"lent": True}
    stale = await send(server, "PUT", f"{BOOKS}/a", {**book("a"), "metadata": metadata})
    assert (stale.status, stale.json()["reason"]) == (409, "Conflict")
    assert (await send(server, "DELETE", f"{BOOKS}/a")).status == 200
    assert (await send(server, "GET", f"{BOOKS}/a")).status == 404
    assert TOLD == [("CREATE", "a"), ("UPDATE", "a"), ("DELETE", "a")]


async def test_a_dry_run_comes_to_no_storage(server: Server) -> None:
    assert (await send(server, "POST", f"{BOOKS}?dryRun=All", book("a"))).status == 201
    assert SHELF.books == {}
    await send(server, "POST", BOOKS, book("a"))
    await send(server, "DELETE", f"{BOOKS}/a?dryRun=All")
    assert list(SHELF.books) == [("default", "a")]


async def test_it_is_applied(server: Server) -> None:
    apply = "application/apply-patch+yaml"
    for status in (201, 200):
        answer = await send(server, "PATCH", f"{BOOKS}/a?fieldManager=me", book("a"), media=apply)
        assert answer.status == status, answer.body
    assert answer.json()["metadata"]["managedFields"][0]["manager"] == "me"


async def test_lists_are_selected_and_shown_as_tables(server: Server) -> None:
    for name in ("a", "b"):
        await send(server, "POST", BOOKS, book(name))
    body = (await send(server, "GET", f"{BOOKS}?fieldSelector=spec.title%3Db")).json()
    assert ([each["metadata"]["name"] for each in body["items"]], body["metadata"]["resourceVersion"]) == (["b"], "2")
    elsewhere = await send(server, "GET", "/apis/e.x/v1/namespaces/other/books")
    assert elsewhere.json()["items"] == []
    am = await send(server, "GET", "/apis/e.x/v1/hours?labelSelector=half%3Dpm")
    assert am.json()["items"] == []
    assert (await send(server, "DELETE", BOOKS)).status == 200
    assert SHELF.books == {}


async def watched(server: Server, query: str, count: int) -> list[tuple[str, str | int]]:
    fields = [("accept", "application/json"), ("authorization", f"Bearer {TOKEN}")]
    response = await InProcessClient(server.handler).request("GET", f"{BOOKS}?watch=1&{query}", fields, b"")
    found: list[tuple[str, str | int]] = []
    async for piece in response:
        for line in piece.splitlines():
            event = json.loads(line)
            found.append((event["type"], event["object"].get("metadata", {}).get("name", event["object"].get("code"))))
        if len(found) >= count:
            break
    await response.aclose()
    return found


async def test_watches_tell_what_the_storage_tells_and_end_it(server: Server) -> None:
    await send(server, "POST", BOOKS, book("a"))
    watching = asyncio.ensure_future(watched(server, "", 3))
    await SHELF.opened.wait()
    await send(server, "POST", BOOKS, book("b"))
    await send(server, "DELETE", f"{BOOKS}/a")
    assert await watching == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    await SHELF.closed.wait()
    assert await watched(server, "resourceVersion=1", 2) == [("ADDED", "b"), ("DELETED", "a")]
    assert await watched(server, "resourceVersion=99", 1) == [("ERROR", 410)]


async def test_what_can_only_be_created_is_answered_and_not_kept(server: Server) -> None:
    body = {"apiVersion": "e.x/v1", "kind": "Sum", "numbers": [1, 2]}
    answer = await send(server, "POST", "/apis/e.x/v1/sums", body)
    assert (answer.status, answer.json()["total"], answer.json()["asked_by"]) == (201, 3, "admin")
    wrong = await send(server, "POST", "/apis/e.x/v1/sums", {**body, "numbers": ["x"]})
    assert wrong.status == 422
    assert (await send(server, "GET", "/apis/e.x/v1/sums")).status == 405


async def test_a_whole_control_plane_serves_it(start_control_plane: Any, client_of: Any) -> None:
    SHELF.clear()
    plane = await start_control_plane()
    await mount(plane, Book)
    client = client_of(plane)
    assert (await client.post(BOOKS, book("a"))).status == 201
    assert list(SHELF.books) == [("default", "a")]


def test_a_storage_has_what_it_rests_on() -> None:
    class Forgetful:
        async def delete(self, request: Request[Any], obj: Any) -> None: ...

    class Named(msgspec.Struct):
        metadata: ObjectMeta

    class Nameless(msgspec.Struct):
        size: int = 1

    with pytest.raises(TypeError, match="has delete without get"):
        resource("e.x/v1", storage=Forgetful())(Named)
    with pytest.raises(TypeError, match="has none of the methods get, list"):
        resource("e.x/v1", storage=object())(Named)
    with pytest.raises(TypeError, match="Nameless has no field `metadata`"):
        resource("e.x/v1", storage=SHELF)(Nameless)
    with pytest.raises(TypeError, match="only one version"):
        version_of(Book, "v2")(Nameless)
