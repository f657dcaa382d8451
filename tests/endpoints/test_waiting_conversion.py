"""A kind whose versions are converted by something that has to be waited for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from steersman.kinds.kind import Kind
from steersman.kinds.open import OpenKind, OpenObject
from steersman.machinery.errors.status import plain_internal
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.conversion import WaitingConversion
from steersman.rest.resource import AGE, Column, OtherVersion, Resource
from tests.endpoints.small_server import SmallServer

V1, V2 = "/apis/e.x/v1/namespaces/ns/gadgets", "/apis/e.x/v2/namespaces/ns/gadgets"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Converter:
    """In v1 a gadget has `size: 2x3`, in v2 `width: 2` and `height: 3`. Each call takes some turns of the loop."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        """The version asked for, and the names of the objects."""
        self.fails = False
        self.held: asyncio.Event | None = None

    async def __call__(self, objects: Sequence[OpenObject], target: Kind[Any]) -> list[OpenObject]:
        self.calls.append((target.api_version, [each.metadata.name for each in objects]))
        for _ in range(len(self.calls) % 3 + 1):
            await asyncio.sleep(0)
        if self.held is not None:
            await self.held.wait()
        if self.fails:
            raise plain_internal("conversion webhook for e.x/v1, Kind=Gadget failed")
        return [self._converted(each, target.api_version) for each in objects]

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


@pytest.fixture
async def server(converter: Converter) -> AsyncIterator[SmallServer]:
    stored, other = (OpenKind(GroupVersionKind("e.x", version, "Gadget")) for version in ("v1", "v2"))
    conversion = WaitingConversion(stored, other, converter)
    gadgets = Resource(
        kind=stored, plural="gadgets", name_validator=name_is_dns_subdomain,
        columns=(Column("Size", lambda each: each.content.get("size", "")), AGE),
        other_versions=(OtherVersion(
            other, conversion.to_hub, conversion.from_hub, conversion=conversion,
            columns=(Column("Width", lambda each: each.content.get("width", 0)), AGE),
        ),),
    )  # fmt: skip
    small = SmallServer((gadgets,))
    await small.start()
    yield small
    await small.stop()


def gadget(name: str, version: str = "v2", **content: Any) -> dict[str, Any]:
    return {"apiVersion": f"e.x/{version}", "kind": "Gadget", "metadata": {"name": name}, **content}


async def ask(server: SmallServer, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
    answer = await server.ask(method, path, body, content_type=media)
    assert answer.status in (200, 201), answer.text
    return answer.json()


async def test_what_is_written_in_one_version_is_read_in_all(server, converter):
    made = await ask(server, "POST", V2, gadget("a", width=2, height=3))
    assert (made["apiVersion"], made["width"]) == ("e.x/v2", 2)
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "2x3"
    converter.calls.clear()
    read = await ask(server, "GET", f"{V2}/a")
    assert (read["width"], read["height"], "size" in read) == (2, 3, False)
    assert converter.calls == []  # it was kept
    await ask(server, "PUT", f"{V2}/a", gadget("a", width=5, height=6))
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "5x6"


async def test_the_stored_version_is_never_converted(server, converter):
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    await ask(server, "PATCH", f"{V1}/a", {"size": "3x3"}, MERGE)
    await ask(server, "GET", V1)
    await ask(server, "DELETE", f"{V1}/a")
    assert converter.calls == []


async def test_a_list_is_converted_at_once(server, converter):
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


async def test_a_long_list_is_whole_and_in_order(server, converter):
    for number in range(300):
        await ask(server, "POST", V1, gadget(f"g{number:03}", "v1", size=f"{number}x1", filler="x" * 2_000))
    listed = await ask(server, "GET", f"{V2}?limit=250")
    assert [each["width"] for each in listed["items"]] == list(range(250))
    assert [len(names) for _, names in converter.calls] == [250]


@pytest.mark.parametrize(("media", "patch"), [
    (MERGE, {"width": 9}), (JSON_PATCH, [{"op": "replace", "path": "/width", "value": 9}]),
    (APPLY, gadget("a", width=9)),
])  # fmt: skip
async def test_patches_are_applied_to_the_version_of_the_request(server, media, patch):
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    query = "?fieldManager=me&force=true" if media == APPLY else ""
    patched = await ask(server, "PATCH", f"{V2}/a{query}", patch, media)
    assert (patched["width"], patched["height"]) == (9, 3)
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "9x3"


async def test_an_apply_that_makes_an_object_stores_it(server):
    await ask(server, "PATCH", f"{V2}/a?fieldManager=me", gadget("a", width=1, height=2), APPLY)
    assert (await ask(server, "GET", f"{V1}/a"))["size"] == "1x2"
    again = await ask(server, "PATCH", f"{V2}/a?fieldManager=me", gadget("a", width=1, height=2), APPLY)
    assert [each["manager"] for each in again["metadata"]["managedFields"]] == ["me"]


async def test_fields_change_hands_in_the_version_they_were_written_in(server):
    await ask(server, "POST", f"{V2}?fieldManager=first", gadget("a", width=2, height=3, color="red"))
    await ask(server, "PATCH", f"{V1}/a?fieldManager=second", {"size": "4x4"}, MERGE)
    entries = (await ask(server, "GET", f"{V1}/a"))["metadata"]["managedFields"]
    owned = {each["manager"]: (each["apiVersion"], sorted(each["fieldsV1"])) for each in entries}
    assert owned == {"first": ("e.x/v2", ["f:color"]), "second": ("e.x/v1", ["f:size"])}
    conflict = await server.ask("PATCH", f"{V2}/a?fieldManager=third", gadget("a", width=7), content_type=APPLY)
    assert conflict.status == 409
    assert 'conflict with "second"' in conflict.json()["message"]


async def test_a_write_that_another_overtook_is_made_anew(server):
    await ask(server, "POST", V1, gadget("a", "v1", size="0x0"))
    names = [f"k{number}" for number in range(20)]
    await asyncio.gather(*(ask(server, "PATCH", f"{V2}/a", {name: 1}, MERGE) for name in names))
    assert set(names) <= set(await ask(server, "GET", f"{V1}/a"))


async def test_unknown_fields_are_told_once(server):
    answer = await server.ask("POST", f"{V2}?fieldValidation=Warn", {
        **gadget("a", width=1), "metadata": {"name": "a", "nothing": 1},
    }, content_type="application/json")  # fmt: skip
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


async def test_watchers_are_told_in_order_and_each_event_is_converted_once(server, converter):
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
    assert sum(len(names) for _, names in converter.calls) == 30
    for watch in watches:
        await watch.aclose()


async def test_events_that_wait_are_converted_together(server, converter):
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


async def test_what_cannot_be_converted_is_an_error(server, converter):
    await ask(server, "POST", V1, gadget("a", "v1", size="2x3"))
    converter.fails = True
    for method, path, body in (("GET", f"{V2}/a", None), ("GET", V2, None), ("POST", V2, gadget("b", width=1)),
                               ("PUT", f"{V2}/a", gadget("a", width=1))):  # fmt: skip
        answer = await server.ask(method, path, body, content_type="application/json")
        assert answer.status == 500
        assert answer.json()["message"] == "conversion webhook for e.x/v1, Kind=Gadget failed"
    converter.fails = False
    assert (await ask(server, "GET", f"{V2}/a"))["width"] == 2
    assert (await server.get(f"{V1}/b")).status == 404


async def test_a_reader_that_leaves_costs_the_others_nothing(server, converter):
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
