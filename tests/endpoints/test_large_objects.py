"""Large objects: in every kind of request, slow steps run in worker threads."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.endpoints.bodies import SURELY_LARGE
from steersman.endpoints.handlers import watch as watch_module
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.yaml import from_json
from steersman.machinery.errors.field import FieldError
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.large_work.body_budget import BodyBudget
from steersman.machinery.large_work.sizes import is_large, is_large_protobuf, is_large_yaml
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.net.body import IncomingBody
from steersman.net.message import BodyAborted
from steersman.rest.context import Context
from steersman.rest.resource import Column, Resource
from steersman.rest.strategy import Strategy
from steersman.storage.cache import replay
from steersman.work.offloading import Account
from steersman.work.threads import WorkerThreads
from tests.endpoints.small_server import Answer, SmallServer, Watch

NOTES = "/api/v1/namespaces/ns/configmaps"
LARGE = {"metadata": {"name": "a"}, "data": {f"key-{number}": "" for number in range(5_000)}}
SMALL = {"metadata": {"name": "a"}, "data": {"key": ""}}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Seen:
    """Names of the steps that ran on the event loop's thread, and of the others."""

    def __init__(self) -> None:
        self.loop = threading.get_ident()
        self.here: set[str] = set()
        self.beside: set[str] = set()

    def step(self, name: str) -> None:
        (self.here if threading.get_ident() == self.loop else self.beside).add(name)


class Noting(Strategy[ConfigMap]):
    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def prepare_for_create(self, ctx: Context, obj: ConfigMap) -> None:
        self.seen.step("prepare")

    def validate(self, ctx: Context, obj: ConfigMap) -> Iterator[FieldError]:
        self.seen.step("validate")
        yield from ()

    def warnings_on_create(self, ctx: Context, obj: ConfigMap) -> Iterator[str]:
        self.seen.step("warn")
        yield from ()

    def prepare_for_update(self, ctx: Context, new: ConfigMap, old: ConfigMap) -> None:
        self.seen.step("prepare")

    def validate_update(self, ctx: Context, new: ConfigMap, old: ConfigMap) -> Iterator[FieldError]:
        return self.validate(ctx, new)

    def warnings_on_update(self, ctx: Context, new: ConfigMap, old: ConfigMap) -> Iterator[str]:
        return self.warnings_on_create(ctx, new)

    def canonicalize(self, obj: ConfigMap) -> None:
        self.seen.step("canonicalize")


STEPS = {"default", "prepare", "validate", "warn", "canonicalize"}


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
async def noting(start_server: Callable[..., Any], seen: Seen) -> SmallServer:
    """A server whose resource records the threads of its steps, and of the cells of its Table."""

    def cell(note: ConfigMap) -> int:
        seen.step("cell")
        return len(note.data)

    resource: Resource[ConfigMap] = Resource(
        kind=built_in(ConfigMap, default=lambda _: seen.step("default")),
        plural="configmaps",
        strategy=Noting(seen),
        columns=(Column("Data", cell),),
        name_validator=name_is_dns_subdomain,
    )
    server: SmallServer = await start_server(resources=(resource,))
    return server


def as_protobuf(body: dict[str, Any]) -> bytes:
    from steersman.machinery.codec.serializer import decode_json

    return protobuf.encode(decode_json(ConfigMap, json.dumps(body).encode()), GroupVersionKind("", "v1", "ConfigMap"))


def as_json(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()


def as_yaml(body: dict[str, Any]) -> bytes:
    return from_json(as_json(body))


FORMS = {"application/json": as_json, "application/yaml": as_yaml, PROTOBUF: as_protobuf}


@pytest.mark.parametrize("media", FORMS)
async def test_a_large_new_object_is_worked_on_beside_the_loop(noting: SmallServer, seen: Seen, media: str) -> None:
    answer = await noting.ask("POST", NOTES, FORMS[media](LARGE), content_type=media)
    assert answer.status == 201
    assert (seen.beside, seen.here) == (STEPS, set())


async def test_a_large_body_is_not_read_before_there_is_room_for_it(
    noting: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: list[tuple[str, int]] = []
    left: list[tuple[str, int]] = []
    room = asyncio.Event()

    async def acquire(_: BodyBudget, user: str, size: int) -> None:
        entered.append((user, size))
        await room.wait()

    monkeypatch.setattr(BodyBudget, "acquire", acquire)
    monkeypatch.setattr(BodyBudget, "release", lambda _, user, size: left.append((user, size)))
    body = as_json({"metadata": {"name": "a"}, "data": {"key": "x" * 100_000}})
    asked = asyncio.ensure_future(noting.ask("POST", NOTES, body, content_length=str(len(body))))
    small = as_json({**SMALL, "metadata": {"name": "b"}})
    assert (await noting.ask("POST", NOTES, small, content_length=str(len(small)))).status == 201
    assert (await noting.get(f"{NOTES}/a")).status == 404
    assert not left
    room.set()
    assert (await asked).status == 201
    assert entered == left == [("system:anonymous", len(body))]


@pytest.mark.parametrize("media", FORMS)
async def test_a_small_new_object_is_worked_on_at_once(noting: SmallServer, seen: Seen, media: str) -> None:
    answer = await noting.ask("POST", NOTES, FORMS[media](SMALL), content_type=media)
    assert answer.status == 201
    assert (seen.here, seen.beside) == (STEPS, set())


@pytest.mark.parametrize(
    ("method", "path", "media"),
    [("POST", NOTES, "application/yaml"), ("PATCH", f"{NOTES}/a?fieldManager=x", "application/apply-patch+yaml")],
)
async def test_little_yaml_that_stands_for_much_is_worked_on_beside_the_loop(
    noting: SmallServer, seen: Seen, method: str, path: str, media: str
) -> None:
    data = f"a: &a {'x' * 400}, " + ", ".join(f"k{number}: *a" for number in range(100))
    body = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{{data}}}}}".encode()
    assert not is_large(body)
    answer = await noting.ask(method, path, body, content_type=media)
    assert (answer.status, len(answer.json()["data"])) == (201, 101)
    assert (seen.beside, seen.here) == (STEPS, set())


@pytest.mark.parametrize("media", FORMS)
async def test_a_large_update_is_worked_on_beside_the_loop(noting: SmallServer, seen: Seen, media: str) -> None:
    await noting.note("a")
    seen.here.clear()
    answer = await noting.ask("PUT", f"{NOTES}/a", FORMS[media](LARGE), content_type=media)
    assert answer.status == 200
    assert (seen.beside, seen.here) == (STEPS, set())


PATCHES: dict[str, Any] = {
    "application/merge-patch+json": {"data": LARGE["data"]},
    "application/strategic-merge-patch+json": {"data": LARGE["data"]},
    "application/json-patch+json": [{"op": "add", "path": "/data", "value": LARGE["data"]}],
    "application/apply-patch+yaml": {"apiVersion": "v1", "kind": "ConfigMap", **LARGE},
}
TOUCHES: dict[str, Any] = {
    "application/merge-patch+json": {"data": {"key-1": "x"}},
    "application/strategic-merge-patch+json": {"data": {"key-1": "x"}},
    "application/json-patch+json": [{"op": "replace", "path": "/data/key-1", "value": "x"}],
    "application/apply-patch+yaml": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key-x": "x"}},
}


@pytest.mark.parametrize(
    ("method", "path", "media"),
    [
        ("POST", NOTES, "application/json"),
        ("PUT", f"{NOTES}/a", "application/json"),
        ("PATCH", f"{NOTES}/a", "application/merge-patch+json"),
        ("PATCH", f"{NOTES}/a", "application/apply-patch+yaml"),
        ("DELETE", f"{NOTES}/a", "application/json"),
        ("DELETE", NOTES, "application/json"),
    ],
)
async def test_a_large_body_of_a_user_of_whom_much_waits_is_refused_unread(
    noting: SmallServer, monkeypatch: pytest.MonkeyPatch, method: str, path: str, media: str
) -> None:
    async def read(_: IncomingBody, limit: int) -> bytes:
        raise AssertionError("the body was read")

    monkeypatch.setattr(Account, "has_room", lambda _: False)
    monkeypatch.setattr(IncomingBody, "read", read)
    fields = [("authorization", "Bearer alice"), ("content-type", media), ("content-length", str(SURELY_LARGE + 1))]
    answer = await noting.client.request(method, f"{path}?fieldManager=x", fields, b"{}")
    assert (answer.status, dict(answer.headers)["retry-after"]) == (429, "1")
    await answer.aclose()


@pytest.mark.parametrize("length", ["65536", "0" * 30 + "65537", "65537, 65537", str(4 << 20), "9" * 5000])
async def test_other_bodies_are_read_first(noting: SmallServer, monkeypatch: pytest.MonkeyPatch, length: str) -> None:
    monkeypatch.setattr(Account, "has_room", lambda _: pytest.fail("nothing is large"))
    fields = {"content_type": "application/json", "content_length": length}
    answer = await noting.ask("POST", NOTES, SMALL, user="alice", **fields)
    assert answer.status == 201


def test_what_is_refused_unread_is_large_in_every_form() -> None:
    for judge in (is_large, is_large_yaml, is_large_protobuf):
        assert judge(bytes(SURELY_LARGE + 1))


async def patched(server: SmallServer, media: str, body: Any) -> Answer:
    query = "?fieldManager=me" if "apply" in media else ""
    return await server.ask("PATCH", f"{NOTES}/a{query}", as_json(body), content_type=media)


@pytest.mark.parametrize("media", PATCHES)
async def test_a_large_patch_is_worked_on_beside_the_loop(noting: SmallServer, seen: Seen, media: str) -> None:
    await noting.note("a")
    seen.here.clear()
    answer = await patched(noting, media, PATCHES[media])
    assert answer.status == 200, answer.text
    assert (seen.beside, seen.here) == (STEPS, set())


@pytest.mark.parametrize("media", TOUCHES)
async def test_a_small_patch_of_a_large_object_is_worked_on_beside_the_loop(
    noting: SmallServer, seen: Seen, media: str
) -> None:
    await noting.ask("POST", NOTES, as_json(LARGE))
    seen.beside.clear()
    answer = await patched(noting, media, TOUCHES[media])
    assert answer.status == 200, answer.text
    assert (seen.beside, seen.here) == (STEPS, set())


async def test_a_configuration_that_makes_a_large_object_is_applied_beside_the_loop(
    noting: SmallServer, seen: Seen
) -> None:
    answer = await patched(noting, "application/apply-patch+yaml", PATCHES["application/apply-patch+yaml"])
    assert answer.status == 201, answer.text
    assert (seen.beside, seen.here) == (STEPS, set())


@pytest.mark.parametrize("accept", [TABLE, f"{TABLE},application/json"])
@pytest.mark.parametrize("path", [f"{NOTES}/a", NOTES])
async def test_a_large_object_is_rendered_beside_the_loop(
    noting: SmallServer, seen: Seen, accept: str, path: str
) -> None:
    big = {"metadata": {"name": "a"}, "data": {"key": "x" * 100_000}}
    await noting.ask("POST", NOTES, as_json(big))
    seen.beside.clear()
    answer = await noting.get(path, accept=accept)
    assert [row["cells"] for row in answer.json()["rows"]] == [["a", 1]]
    assert (seen.beside, seen.here) == ({"cell"}, set())


async def test_too_many_values_are_refused_in_every_form(noting: SmallServer) -> None:
    many = {"metadata": {"name": "a"}, "data": {str(number): "" for number in range(70_000)}}
    for media, encoded in FORMS.items():
        answer = await noting.ask("POST", NOTES, encoded(many), content_type=media)
        assert (answer.status, answer.json()["reason"]) == (413, "RequestEntityTooLarge"), media
    await noting.note("a")
    for media in PATCHES:
        body: Any = {"apiVersion": "v1", "kind": "ConfigMap", **many} if "apply" in media else {"data": many["data"]}
        if "json-patch" in media:
            body = [{"op": "add", "path": "/data", "value": many["data"]}]
        answer = await patched(noting, media, body)
        assert (answer.status, answer.json()["reason"]) == (413, "RequestEntityTooLarge"), media


async def table_watch(server: SmallServer) -> Watch:
    response = await server.open("GET", f"{NOTES}?watch=1", accept=TABLE)
    return Watch(response)


def rows(event: dict[str, Any]) -> Any:
    return [row["cells"] for row in event["object"]["rows"]]


async def test_events_of_large_objects_are_encoded_beside_the_loop_and_keep_their_order(
    noting: SmallServer, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "SLICE_BYTES", 1_000)
    first, second = await table_watch(noting), await table_watch(noting)
    await noting.ask("POST", NOTES, as_json({"metadata": {"name": "large"}, "data": {"key": "x" * 5_000}}))
    await noting.note("small")
    await noting.ask("POST", NOTES, as_json({"metadata": {"name": "large-2"}, "data": {"key": "x" * 5_000}}))
    for watch in (first, second):
        events = [await asyncio.wait_for(watch.next(), 10) for _ in range(3)]
        assert [rows(event) for event in events] == [[["large", 1]], [["small", 0]], [["large-2", 1]]]
        assert [event["object"]["columnDefinitions"] is None for event in events] == [False, True, True]
    assert "cell" in seen.beside
    await noting.note("later")
    assert rows(await asyncio.wait_for(first.next(), 10)) == [["later", 0]]


async def test_the_first_objects_of_a_watch_are_encoded_beside_the_loop_where_they_are_large(
    noting: SmallServer, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "SLICE_BYTES", 1_000)
    for name in ("a", "b"):
        body = {"metadata": {"name": name}, "data": {"key": "x" * 5_000}}
        await noting.ask("POST", NOTES, as_json(body))
    seen.beside.clear()
    watch = await table_watch(noting)
    events = [await asyncio.wait_for(watch.next(), 10) for _ in range(2)]
    assert [rows(event) for event in events] == [[["a", 1]], [["b", 1]]]
    assert [event["object"]["columnDefinitions"] is None for event in events] == [False, True]
    assert (seen.beside, "cell" in seen.here) == ({"cell"}, False)


async def test_a_watch_that_goes_on_from_long_ago_is_told_more_than_may_wait(
    noting: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "SLICE_BYTES", 1_000)
    monkeypatch.setattr(watch_module, "BUFFER_LIMIT", 20_000)
    monkeypatch.setattr(replay, "SLICE_BYTES", 1_000)
    for number in range(10):
        await noting.ask("POST", NOTES, as_json({"metadata": {"name": f"n{number}"}, "data": {"key": "x" * 5_000}}))
    watch = Watch(await noting.open("GET", f"{NOTES}?watch=1&resourceVersion=1", accept=TABLE))
    told = [rows(await asyncio.wait_for(watch.next(), 10))[0][0] for _ in range(10)]
    assert told == [f"n{number}" for number in range(10)]


async def test_no_bookmark_overtakes_events_that_are_still_encoded(
    noting: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "SLICE_BYTES", 1_000)
    monkeypatch.setattr(watch_module, "BOOKMARK_EVERY", 0.001)
    go_on = threading.Event()
    encode = watch_module.TableWatchStream.encode_event

    def late(stream: Any, kind: str, item: Any) -> bytes:
        go_on.wait(10)
        return encode(stream, kind, item)

    monkeypatch.setattr(watch_module.TableWatchStream, "encode_event", late)
    response = await noting.open("GET", f"{NOTES}?watch=1&allowWatchBookmarks=true&resourceVersion=1", accept=TABLE)
    watch = Watch(response)
    await noting.ask("POST", NOTES, as_json({"metadata": {"name": "large"}, "data": {"key": "x" * 5_000}}))
    await asyncio.sleep(0.05)  # time for many bookmarks
    go_on.set()
    first = await asyncio.wait_for(watch.next(), 10)
    assert (first["type"], rows(first)) == ("ADDED", [["large", 1]])
    assert (await asyncio.wait_for(watch.next(), 10))["type"] == "BOOKMARK"


async def test_owners_of_fields_do_not_count_when_an_object_is_patched(noting: SmallServer) -> None:
    many = {"metadata": {"name": "a"}, "data": {str(number): "" for number in range(33_000)}}
    assert (await noting.ask("POST", NOTES, as_json(many))).status == 201
    for media in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
        answer = await patched(noting, media, {"metadata": {"annotations": {"by": media}}})
        assert answer.status == 200, answer.text[:200]
    answer = await patched(
        noting, "application/json-patch+json", [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    )
    assert answer.status == 200, answer.text[:200]


async def watch_from(server: SmallServer, revision: str) -> Watch:
    return Watch(await server.open("GET", f"{NOTES}?watch=1&resourceVersion={revision}", accept=TABLE))


@pytest.mark.parametrize("revision", ["0", "1"])
@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), RuntimeError("cannot schedule new futures after shutdown")]
)
async def test_a_watch_ends_in_order_when_the_lane_has_closed(
    noting: SmallServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, revision: str, error: Any
) -> None:
    monkeypatch.setattr(watch_module, "SLICE_BYTES", 1_000)
    large = as_json({"metadata": {"name": "large"}, "data": {"key": "x" * 5_000}})
    if revision == "0":
        await noting.ask("POST", NOTES, large)
    asked = asyncio.Event()

    async def closed(*_: Any) -> Any:
        asked.set()
        await asyncio.sleep(0)
        noting.server.lifecycle.shutting_down = True
        raise error

    monkeypatch.setattr(WorkerThreads, "run", closed)
    watches = [await watch_from(noting, revision) for _ in range(2)]
    if revision == "1":
        await noting.ask("POST", NOTES, large)
    await asyncio.wait_for(asked.wait(), 10)
    for watch in watches:
        assert await asyncio.wait_for(watch.over(), 10)
    assert not noting.server.watches
    assert not caplog.records


async def test_a_failed_encoding_fails_those_who_waited_for_it_alone(
    noting: SmallServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch_module, "SLICE_BYTES", 1_000)
    encode = watch_module.TableWatchStream.encode_event
    faults = [ValueError("once")]

    def faulty(stream: Any, kind: str, item: Any) -> bytes:
        if faults:
            raise faults.pop()
        return encode(stream, kind, item)

    monkeypatch.setattr(watch_module.TableWatchStream, "encode_event", faulty)
    first = await watch_from(noting, "1")
    await noting.ask("POST", NOTES, as_json({"metadata": {"name": "large"}, "data": {"key": "x" * 5_000}}))
    with pytest.raises(BodyAborted):
        await asyncio.wait_for(first.next(), 10)
    second = await watch_from(noting, "1")
    assert rows(await asyncio.wait_for(second.next(), 10)) == [["large", 1]]
    assert [record.message for record in caplog.records] == ["a watch of configmaps failed"]


async def test_an_encoding_that_fails_when_nobody_waits_any_more_is_not_told(
    noting: SmallServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch_module, "SLICE_BYTES", 1_000)
    begun, failed = asyncio.Event(), asyncio.Event()
    go_on = asyncio.Event()

    async def late(*_: Any) -> Any:
        begun.set()
        await go_on.wait()
        failed.set()
        raise ValueError("nobody asks")

    monkeypatch.setattr(WorkerThreads, "run", late)
    watch = await watch_from(noting, "1")
    await noting.ask("POST", NOTES, as_json({"metadata": {"name": "large"}, "data": {"key": "x" * 5_000}}))
    await begun.wait()
    await watch.response.aclose()
    go_on.set()
    await failed.wait()
    await asyncio.sleep(0)
    gc.collect()
    assert not caplog.records


WRONG = {
    "too many values": (413, {**SMALL, "data": {f"key-{number}": "" for number in range(70_000)}}, {}),
    "of another type": (400, {**SMALL, "data": {f"key-{number}": 1 for number in range(5_000)}}, {}),
    "cut off": (400, json.dumps(LARGE).encode()[:-1], {}),
    "YAML, cut off": (400, from_json(json.dumps(LARGE).encode()) + b"  '", {"content_type": "application/yaml"}),
    "invalid": (422, {**LARGE, "metadata": {"name": "A"}}, {}),
    "apply, cut off": (
        400,
        from_json(json.dumps(LARGE).encode()) + b"  '",
        {"content_type": "application/apply-patch+yaml"},
    ),
    "strictly unknown": (400, {**LARGE, "more": 1}, {}),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_large_request_that_is_refused_leaves_no_garbage(small: SmallServer, case: str) -> None:
    code, body, headers = WRONG[case]
    method, path = ("PATCH", f"{NOTES}/a?fieldManager=me") if "apply" in case else ("POST", NOTES)

    async def ask() -> None:
        separator = "&" if "?" in path else "?"
        answer = await small.ask(method, f"{path}{separator}fieldValidation=Strict", body, **headers)
        assert answer.status == code

    await ask()
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            await ask()
        assert gc.collect() < 500
    finally:
        gc.enable()
