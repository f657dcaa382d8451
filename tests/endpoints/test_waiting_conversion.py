"""A kind with an asynchronous conversion between its versions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from steersman.kinds.open import OpenKind, OpenObject
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.conversion import Conversion, NotConverted
from steersman.rest.resource import AGE, Column, OtherVersion, Resource
from steersman.store import converting_sink
from steersman.work.backoff import Backoff
from tests.endpoints.small_server import SmallServer, Watch

V1, V2 = "/apis/e.x/v1/namespaces/ns/gadgets", "/apis/e.x/v2/namespaces/ns/gadgets"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Converter(Conversion):
    """In v1 a gadget has `size: 2x3`, in v2 `width: 2` and `height: 3`. Each call takes iterations of the event
    loop.
    """

    def __init__(self) -> None:
        kinds = [OpenKind(GroupVersionKind("e.x", version, "Gadget")) for version in ("v1", "v2")]
        self.kinds = {each.api_version: each for each in kinds}
        for each in kinds:
            each.family = self.kinds
        self.calls: list[tuple[str, list[str]]] = []
        """The target version and the names of the objects of each call."""
        self.fails = False
        self.held: asyncio.Event | None = None
        self.closed = 0
        self.came = asyncio.Condition()

    async def convert_values(self, values: Sequence[bytes], target: OpenKind) -> list[bytes]:
        objects = [target.decode(target.body_of(each)) for each in values]
        assert all(target.version_of(target.body_of(each)) != target.api_version for each in values)
        assert not any(each.metadata.resource_version for each in objects)
        async with self.came:
            self.calls.append((target.api_version, [each.metadata.name for each in objects]))
            self.came.notify_all()
        for _ in range(len(self.calls) % 3 + 1):
            await asyncio.sleep(0)
        if self.held is not None:
            await self.held.wait()
        if self.fails:
            raise NotConverted("conversion webhook for e.x/v1, Kind=Gadget failed")
        return [target.value_as_is(self._converted(each, target.api_version)) for each in objects]

    async def close(self) -> None:
        self.closed += 1

    @staticmethod
    def _converted(obj: OpenObject, version: str) -> OpenObject:
        content = dict(obj.content)
        if version == "e.x/v2" and "size" in content:
            content["width"], content["height"] = map(int, content.pop("size").split("x"))
        if version == "e.x/v1" and "width" in content:
            content["size"] = f"{content.pop('width')}x{content.pop('height', 0)}"
        return OpenObject(obj.metadata, content)


@pytest.fixture
def converter() -> Converter:
    return Converter()


def same(obj: OpenObject) -> OpenObject:
    return obj


def gadgets_stored_in(version: str, converter: Converter) -> Resource[OpenObject, None]:
    """Return the gadgets resource, with selectable fields of each version."""
    names = {"v1": "size", "v2": "width"}

    def columns(name: str) -> tuple[Column, ...]:
        return (Column(name.title(), lambda each: each.content.get(name, "")), AGE)

    def fields(name: str) -> dict[str, Any]:
        return {name: lambda each: str(each.content.get(name, ""))}

    other = "v2" if version == "v1" else "v1"
    return Resource(
        kind=converter.kinds[f"e.x/{version}"],
        plural="gadgets",
        name_validator=name_is_dns_subdomain,
        columns=columns(names[version]),
        selectable_fields=fields(names[version]),
        conversion=converter,
        other_versions=(
            OtherVersion(
                converter.kinds[f"e.x/{other}"],
                same,
                same,
                columns=columns(names[other]),
                selectable_fields={names[other]: names[other]},
                own_fields=fields(names[other]),
            ),
        ),
    )


@pytest.fixture
async def server(converter: Converter) -> AsyncIterator[SmallServer]:
    small = SmallServer((gadgets_stored_in("v1", converter),))
    await small.start()
    yield small
    await small.stop()
    assert converter.closed == 1


def gadget(name: str, version: str = "v2", **content: Any) -> dict[str, Any]:
    return {"apiVersion": f"e.x/{version}", "kind": "Gadget", "metadata": {"name": name}, **content}


async def ask(server: SmallServer, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
    answer = await server.ask(method, path, body, content_type=media)
    assert answer.status in (200, 201), answer.text
    return answer.json()


async def test_what_is_written_in_one_version_is_read_in_all(server: SmallServer, converter: Converter) -> None:
    made = await ask(server, "POST", V2, gadget("a", width=2, height=3))
    assert (made["apiVersion"], made["width"]) == ("e.x/v2", 2)
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "2x3"
    converter.calls.clear()
    read = await ask(server, "GET", f"{V2}/a")
    assert (read["width"], read["height"], "size" in read) == (2, 3, False)
    assert len(converter.calls) == 1  # one object is converted anew each time
    await ask(server, "GET", f"{V2}/a?resourceVersion=0")
    await ask(server, "GET", V2)
    assert len(converter.calls) == 1  # it was kept
    await ask(server, "PUT", f"{V2}/a", gadget("a", width=5, height=6))
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "5x6"


async def test_the_stored_version_is_never_converted(server: SmallServer, converter: Converter) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    await ask(server, "PATCH", f"{V1}/a", {"size": "3x3"}, MERGE)
    await ask(server, "GET", V1)
    await ask(server, "DELETE", f"{V1}/a")
    assert converter.calls == []


async def test_a_list_is_converted_at_once(server: SmallServer, converter: Converter) -> None:
    for name in "cab":
        await ask(server, "POST", V1, gadget(name, "v1", size=f"{ord(name)}x1"))
    listed = await ask(server, "GET", V2)
    assert [(each["metadata"]["name"], each["width"]) for each in listed["items"]] == [("a", 97), ("b", 98), ("c", 99)]
    assert listed["apiVersion"] == listed["items"][0]["apiVersion"] == "e.x/v2"
    assert converter.calls == [("e.x/v2", ["a", "b", "c"])]
    table = (await server.get(V2, accept=TABLE)).json()
    assert [row["cells"][:2] for row in table["rows"]] == [["a", 97], ["b", 98], ["c", 99]]
    partial = (await server.get(V2, accept=PARTIAL)).json()
    assert [each["metadata"]["name"] for each in partial["items"]] == ["a", "b", "c"]
    assert len(converter.calls) == 1


async def test_a_long_list_is_whole_and_in_order(server: SmallServer, converter: Converter) -> None:
    for number in range(300):
        await ask(server, "POST", V1, gadget(f"g{number:03}", "v1", size=f"{number}x1", filler="x" * 2_000))
    listed = await ask(server, "GET", f"{V2}?limit=250")
    assert [each["width"] for each in listed["items"]] == list(range(250))
    assert [len(names) for _, names in converter.calls] == [250]


@pytest.mark.parametrize(
    ("media", "patch"),
    [
        (MERGE, {"width": 9}),
        (JSON_PATCH, [{"op": "replace", "path": "/width", "value": 9}]),
        (APPLY, gadget("a", width=9)),
    ],
)
async def test_patches_are_applied_to_the_version_of_the_request(server: SmallServer, media: Any, patch: Any) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    query = "?fieldManager=me&force=true" if media == APPLY else ""
    patched = await ask(server, "PATCH", f"{V2}/a{query}", patch, media)
    assert (patched["width"], patched["height"]) == (9, 3)
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "9x3"


async def test_an_apply_that_makes_an_object_stores_it(server: SmallServer) -> None:
    await ask(server, "PATCH", f"{V2}/a?fieldManager=me", gadget("a", width=1, height=2), APPLY)
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "1x2"
    again = await ask(server, "PATCH", f"{V2}/a?fieldManager=me", gadget("a", width=1, height=2), APPLY)
    assert [each["manager"] for each in again["metadata"]["managedFields"]] == ["me"]


async def test_fields_change_hands_in_the_version_they_were_written_in(server: SmallServer) -> None:
    await ask(server, "POST", f"{V2}?fieldManager=first", gadget("a", width=2, height=3, color="red"))
    await ask(server, "PATCH", f"{V1}/a?fieldManager=second", {"size": "4x4"}, MERGE)
    entries = (await ask(server, "GET", f"{V1}/a"))["metadata"]["managedFields"]
    owned = {each["manager"]: (each["apiVersion"], sorted(each["fieldsV1"])) for each in entries}
    assert owned == {"first": ("e.x/v2", ["f:color"]), "second": ("e.x/v1", ["f:size"])}
    conflict = await server.ask("PATCH", f"{V2}/a?fieldManager=third", gadget("a", width=7), content_type=APPLY)
    assert conflict.status == 409
    assert 'conflict with "second"' in conflict.json()["message"]


async def test_a_write_that_another_overtook_is_made_anew(server: SmallServer) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="0x0"))
    names = [f"k{number}" for number in range(20)]
    await asyncio.gather(*(ask(server, "PATCH", f"{V2}/a", {name: 1}, MERGE) for name in names))
    assert set(names) <= set(await ask(server, "GET", f"{V1}/a"))


async def test_unknown_fields_are_told_once(server: SmallServer) -> None:
    answer = await server.ask(
        "POST",
        f"{V2}?fieldValidation=Warn",
        {**gadget("a", width=1), "metadata": {"name": "a", "nothing": 1}},
        content_type="application/json",
    )
    assert answer.headers.get_all("warning") == ['299 - "unknown field \\"metadata.nothing\\""']


async def next_events(pieces: Any, count: int) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    text = b""
    async with asyncio.timeout(10):
        while len(found) < count:
            text += await anext(pieces)
            *lines, text = text.split(b"\n")
            for line in lines:
                event = json.loads(line)
                found.append((event["type"], event["object"]["metadata"]["name"], event["object"]["width"]))
    return found


async def test_watchers_are_told_in_order_and_each_event_is_converted_once(
    server: SmallServer, converter: Converter
) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="0x1"))
    watches = [await server.open("GET", f"{V2}?watch=1") for _ in range(3)]
    pieces = [aiter(each) for each in watches]
    for each in pieces:
        assert await next_events(each, 1) == [("ADDED", "a", 0)]
    converter.calls.clear()
    for number in range(1, 30):
        await ask(server, "PUT", f"{V1}/a", gadget("a", "v1", size=f"{number}x1"))
    await ask(server, "DELETE", f"{V1}/a")
    expected = [("MODIFIED", "a", number) for number in range(1, 30)] + [("DELETED", "a", 29)]
    for each in pieces:
        assert await next_events(each, 30) == expected
    assert sum(len(names) for _, names in converter.calls) == 29  # what it was when it went is known
    for watch in watches:
        await watch.aclose()


async def test_events_that_wait_are_converted_together(server: SmallServer, converter: Converter) -> None:
    watch = await server.open("GET", f"{V2}?watch=1&resourceVersion=0")
    pieces = aiter(watch)
    converter.held = asyncio.Event()
    for number in range(20):
        await ask(server, "POST", V1, gadget(f"g{number:02}", "v1", size=f"{number}x1"))
    converter.held.set()
    events = await next_events(pieces, 20)
    assert [width for _, _, width in events] == list(range(20))
    assert len(converter.calls) == 2  # that of the first, and of all that came meanwhile
    await watch.aclose()


async def test_what_cannot_be_converted_is_an_error(server: SmallServer, converter: Converter) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    converter.fails = True
    for method, path, body in (
        ("GET", f"{V2}/a", None),
        ("GET", f"{V2}?limit=5", None),
        ("POST", V2, gadget("b", width=1)),
        ("PUT", f"{V2}/a", gadget("a", width=1)),
        ("DELETE", V2, None),
    ):
        answer = await server.ask(method, path, body, content_type="application/json")
        assert answer.status == 500
        assert answer.json()["message"] == "conversion webhook for e.x/v1, Kind=Gadget failed"
    converter.fails = False
    assert (await ask(server, "GET", f"{V2}/a"))["width"] == 2
    assert (await server.get(f"{V1}/b")).status == 404


@pytest.mark.parametrize("query", ["", "?resourceVersion=0", "?limit=5&labelSelector=a", "?watch=1", "/a?watch=1"])
async def test_lists_and_watches_come_again_when_what_converts_is_back(
    server: SmallServer, converter: Converter, query: str
) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    path = V2.replace("/namespaces", "/watch/namespaces") + "/a" if query.startswith("/a") else f"{V2}{query}"
    converter.fails = True
    answer = await server.get(path)
    assert (answer.status, answer.json()["reason"]) == (429, "TooManyRequests")
    assert dict(answer.headers)["retry-after"] == "1"
    assert answer.json()["message"] == (
        "storage is (re)initializing: failed to list e.x/v2, Kind=Gadget: "
        "conversion webhook for e.x/v1, Kind=Gadget failed"
    )
    converter.fails = False
    assert [each["width"] for each in (await ask(server, "GET", V2))["items"]] == [2]
    converter.fails = True
    assert (await server.get(V2)).status == 200  # what has been converted once is known
    await ask(server, "PUT", f"{V1}/a", gadget("a", "v1", size="3x3"))
    assert (await server.get(V2)).status == 429


async def test_a_reader_that_leaves_costs_the_others_nothing(server: SmallServer, converter: Converter) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    converter.held = asyncio.Event()
    leaving = asyncio.ensure_future(server.get(f"{V2}/a"))
    staying = asyncio.ensure_future(server.get(f"{V2}/a"))
    for _ in range(10):
        await asyncio.sleep(0)
    leaving.cancel()
    converter.held.set()
    assert (await staying).json()["width"] == 2
    assert len(converter.calls) == 1


async def stored_otherwise(server: SmallServer, name: str, **content: Any) -> None:
    """Store an object as it was stored when v2 was the stored version."""
    value = {
        "apiVersion": "e.x/v2",
        "kind": "Gadget",
        "metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}"},
        **content,
    }
    await server.storage.create(f"/registry/e.x/gadgets/ns/{name}", json.dumps(value, separators=(",", ":")).encode())


async def test_what_was_stored_in_an_older_version_is_converted_when_it_is_read(
    server: SmallServer, converter: Converter
) -> None:
    await stored_otherwise(server, "a", width=2, height=3)
    await ask(server, "POST", V1, gadget("b", "v1", size="4x5"))
    converter.calls.clear()
    listed = await ask(server, "GET", V1)
    assert [(each["apiVersion"], each["size"]) for each in listed["items"]] == [("e.x/v1", "2x3"), ("e.x/v1", "4x5")]
    assert converter.calls == [("e.x/v1", ["a"])]  # what is of the version already is not sent
    assert (await ask(server, "GET", f"{V2}/a"))["width"] == 2
    assert len(converter.calls) == 1
    converter.fails = True
    assert (await server.get(f"{V1}/a")).status == 500
    assert (await ask(server, "GET", f"{V2}/a"))["height"] == 3


async def test_a_write_brings_an_older_object_to_the_stored_version(server: SmallServer, converter: Converter) -> None:
    await stored_otherwise(server, "a", width=2, height=3)
    before = await ask(server, "GET", f"{V2}/a")
    after = await ask(server, "PUT", f"{V2}/a", before)
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    converter.calls.clear()
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "2x3"
    assert converter.calls == []
    again = await ask(server, "PUT", f"{V2}/a", after)
    assert again["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("path", "selector", "expected"),
    [(V1, "size=2x3", ["old", "same"]), (V2, "width=2", ["old", "same"]), (V2, "width!=2", ["other"])],
)
async def test_fields_are_selected_in_the_version_of_the_request(
    server: SmallServer, path: Any, selector: str, expected: list[Any]
) -> None:
    await stored_otherwise(server, "old", width=2, height=3)
    await ask(server, "POST", V1, gadget("same", "v1", size="2x3"))
    await ask(server, "POST", V2, gadget("other", width=9, height=9))
    listed = await ask(server, "GET", f"{path}?fieldSelector={selector.replace('=', '%3D')}")
    assert [each["metadata"]["name"] for each in listed["items"]] == expected
    assert {each["apiVersion"] for each in listed["items"]} == {f"e.x/{path.split('/')[3]}"}


async def test_fields_of_other_versions_are_not_known(server: SmallServer) -> None:
    answer = await server.get(f"{V2}?fieldSelector=size%3D2x3")
    assert (answer.status, answer.json()["message"]) == (400, "field label not supported: size")


async def test_pages_of_what_is_selected_follow_each_other(server: SmallServer) -> None:
    for number in range(10):
        await ask(server, "POST", V1, gadget(f"g{number}", "v1", size=f"{number % 2}x1"))
    found, token = [], ""
    while True:
        page = await ask(server, "GET", f"{V2}?limit=2&fieldSelector=width%3D1&continue={token}")
        found += [each["metadata"]["name"] for each in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert found == ["g1", "g3", "g5", "g7", "g9"]


async def test_an_empty_list_asks_nothing(server: SmallServer, converter: Converter) -> None:
    assert (await ask(server, "GET", V2))["items"] == []
    assert converter.calls == []


async def test_tables_show_the_columns_of_their_version(server: SmallServer) -> None:
    await stored_otherwise(server, "a", width=2, height=3)
    tables = [(await server.get(path, accept=TABLE)).json() for path in (V1, V2)]
    shown = [
        ([each["name"] for each in table["columnDefinitions"]][1], table["rows"][0]["cells"][1]) for table in tables
    ]
    assert shown == [("Size", "2x3"), ("Width", 2)]


async def test_a_dry_run_is_converted_and_not_stored(server: SmallServer, converter: Converter) -> None:
    made = await ask(server, "POST", f"{V2}?dryRun=All", gadget("a", width=2, height=3))
    assert (made["apiVersion"], made["width"], "resourceVersion" in made["metadata"]) == ("e.x/v2", 2, False)
    assert [version for version, _ in converter.calls] == ["e.x/v1", "e.x/v2"]
    assert (await server.get(f"{V2}/a")).status == 404


async def test_names_are_generated_before_objects_are_converted(server: SmallServer, converter: Converter) -> None:
    body = gadget("", width=2)
    body["metadata"] = {"generateName": "gen-"}
    made = await ask(server, "POST", V2, body)
    assert converter.calls[0] == ("e.x/v1", [made["metadata"]["name"]])


async def test_nothing_is_deleted_that_cannot_be_converted(server: SmallServer, converter: Converter) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    await ask(server, "GET", V2)
    converter.fails = True
    assert (await server.ask("DELETE", f"{V2}/a")).status == 500
    assert (await server.ask("DELETE", V2)).status == 500
    assert (await ask(server, "DELETE", f"{V1}/a"))["status"] == "Success"


async def test_an_object_with_finalizers_is_marked_and_told_in_the_version_of_the_request(server: SmallServer) -> None:
    await ask(server, "POST", V2, {**gadget("a", width=2), "metadata": {"name": "a", "finalizers": ["e.x/wait"]}})
    marked = await ask(server, "DELETE", f"{V2}/a")
    assert (marked["apiVersion"], marked["width"], "deletionTimestamp" in marked["metadata"]) == ("e.x/v2", 2, True)
    gone = await ask(server, "PATCH", f"{V2}/a", {"metadata": {"finalizers": None}}, MERGE)
    assert gone["width"] == 2
    assert (await server.get(f"{V1}/a")).status == 404


async def test_a_collection_is_deleted_by_the_fields_of_its_version(server: SmallServer) -> None:
    for name, size in (("a", "1x1"), ("b", "2x2")):
        await ask(server, "POST", V1, gadget(name, "v1", size=size))
    deleted = await ask(server, "DELETE", f"{V2}?fieldSelector=width%3D2")
    assert [(each["apiVersion"], each["metadata"]["name"]) for each in deleted["items"]] == [("e.x/v2", "b")]
    assert [each["metadata"]["name"] for each in (await ask(server, "GET", V1))["items"]] == ["a"]


# Watches


async def test_a_watch_by_a_field_of_its_version_sees_objects_come_and_go(server: SmallServer) -> None:
    watch = await server.open("GET", f"{V2}?watch=1&fieldSelector=width%3D2")
    pieces = aiter(watch)
    await ask(server, "POST", V1, gadget("a", "v1", size="1x1"))
    for size in ("2x1", "2x2", "3x1", "2x3"):
        await ask(server, "PUT", f"{V1}/a", gadget("a", "v1", size=size))
    await ask(server, "DELETE", f"{V1}/a")
    assert await next_events(pieces, 5) == [
        ("ADDED", "a", 2),
        ("MODIFIED", "a", 2),
        ("DELETED", "a", 2),
        ("ADDED", "a", 2),
        ("DELETED", "a", 2),
    ]
    await watch.aclose()


async def test_what_leaves_a_watch_is_told_at_the_version_it_left_at(server: SmallServer) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="2x1"))
    watch = await server.open("GET", f"{V2}?watch=1&fieldSelector=width%3D2")
    told = Watch(watch)
    assert await told.told() == "ADDED a"
    left = await ask(server, "PUT", f"{V1}/a", gadget("a", "v1", size="3x1"))
    event = await told.next()
    assert (event["type"], event["object"]["width"]) == ("DELETED", 2)
    assert event["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
    await watch.aclose()


async def test_a_watch_begins_with_objects_of_all_versions_in_its_own(server: SmallServer) -> None:
    await stored_otherwise(server, "a", width=2, height=3)
    await ask(server, "POST", V1, gadget("b", "v1", size="4x5"))
    for path, name, expected in ((V2, "width", [2, 4]), (V1, "size", ["2x3", "4x5"])):
        watch = await server.open("GET", f"{path}?watch=1")
        told = Watch(watch)
        assert [(await told.next())["object"][name] for _ in range(2)] == expected
        await watch.aclose()


async def test_a_watch_goes_on_from_an_old_version(server: SmallServer) -> None:
    made = await ask(server, "POST", V1, gadget("a", "v1", size="1x1"))
    for number in range(2, 5):
        await ask(server, "PUT", f"{V1}/a", gadget("a", "v1", size=f"{number}x1"))
    watch = await server.open("GET", f"{V2}?watch=1&resourceVersion={made['metadata']['resourceVersion']}")
    assert await next_events(aiter(watch), 3) == [("MODIFIED", "a", number) for number in range(2, 5)]
    await watch.aclose()


async def test_a_watch_waits_for_a_conversion_that_fails_and_tells_all_of_it_later(
    server: SmallServer, converter: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converting_sink, "BACKOFF", Backoff(0.0))
    watch = await server.open("GET", f"{V2}?watch=1")
    pieces = aiter(watch)
    converter.fails = True
    for number in range(3):
        await ask(server, "POST", V1, gadget(f"g{number}", "v1", size=f"{number}x1"))
    async with converter.came:
        await converter.came.wait_for(lambda: len(converter.calls) >= 3)
    converter.fails = False
    assert [width for _, _, width in await next_events(pieces, 3)] == [0, 1, 2]
    await watch.aclose()


async def test_a_watch_that_cannot_begin_says_why(server: SmallServer, converter: Converter) -> None:
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    converter.fails = True
    answer = await server.get(f"{V2}?watch=1")
    assert (answer.status, "failed" in answer.json()["message"]) == (429, True)


async def test_a_watch_with_too_much_to_convert_is_ended(
    server: SmallServer, converter: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converting_sink, "WAITING_LIMIT", 20_000)
    watch = await server.open("GET", f"{V2}?watch=1")
    converter.held = asyncio.Event()
    for number in range(10):
        await ask(server, "POST", V1, gadget(f"g{number}", "v1", size="1x1", filler="x" * 5_000))
    async with asyncio.timeout(10):
        assert await Watch(watch).over()
    converter.held.set()


async def test_a_watch_that_is_left_converts_nothing_more(server: SmallServer, converter: Converter) -> None:
    watch = await server.open("GET", f"{V2}?watch=1")
    converter.held = asyncio.Event()
    await ask(server, "POST", V1, gadget("a", "v1", size="1x1"))
    await watch.aclose()
    await ask(server, "POST", V1, gadget("b", "v1", size="1x1"))
    converter.held.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert [names for _, names in converter.calls] in ([], [["a"]])


async def test_watches_of_the_stored_version_are_told_at_once(server: SmallServer, converter: Converter) -> None:
    watch = await server.open("GET", f"{V1}?watch=1")
    told = Watch(watch)
    await ask(server, "POST", V1, gadget("a", "v1", size="1x1"))
    assert await told.told() == "ADDED a"
    assert converter.calls == []
    await watch.aclose()
