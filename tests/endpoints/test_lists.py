"""Long lists that are encoded while they are sent: equal bytes, bounded memory, counted until the end."""

from __future__ import annotations

import asyncio
import gzip
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.meta.v1 import PartialObjectMetadata
from steersman.endpoints import lists
from steersman.endpoints.streamed import StreamedBody
from steersman.kinds.built_in import classes_of
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import decode_json, encode_in_order, pretty
from steersman.machinery.codec.yaml import from_json
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.metrics import Metric
from steersman.machinery.selectors import labels
from steersman.machinery.values import times
from steersman.net.message import BodyAborted
from tests.endpoints.small_server import SmallServer
from tests.example_counts import examples

NOTES = "/api/v1/namespaces/ns/configmaps"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
TABLE = ";as=Table;v=v1;g=meta.k8s.io"
PARTIAL = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
FORMS = [
    (JSON, ""),
    (JSON, "?pretty=1"),
    (YAML, ""),
    (PROTOBUF, ""),
    *((JSON + kind, query) for kind in (TABLE, PARTIAL) for query in ("", "?pretty=1")),
    (f"{JSON}{TABLE}", "?includeObject=Object"),
    (YAML + TABLE, ""),
    (YAML + PARTIAL, ""),
    (PROTOBUF + PARTIAL, ""),
]


async def fill(small: SmallServer, count: int, size: int = 2000) -> None:
    """Store `count` notes, without requests."""
    for start in range(0, count, 500):
        names = [f"n{number:05}" for number in range(start, min(start + 500, count))]
        await asyncio.gather(*(store(small, name, {"text": "x" * size}) for name in names))


async def store(small: SmallServer, name: str, data: Any) -> None:
    """Store one note without validation."""
    metadata = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    note = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}
    await small.storage.create(f"/registry/configmaps/ns/{name}", encode_in_order(note))


async def pieces_of(small: SmallServer, target: str, accept: str) -> list[bytes]:
    """Return the pieces of the body of an answer."""
    async with await small.open("GET", target, accept=accept) as answer:
        assert answer.status == 200
        return [piece async for piece in answer]


# Equal bytes

texts = st.text(st.sampled_from("ab \n.:-<&é\u2028'\"#…0"), max_size=12) | st.sampled_from(["...", "x\n\n", "a\n...\n"])
notes = st.lists(st.dictionaries(st.sampled_from(["a", "b", "n1", "n10", "yes"]), texts, max_size=3), max_size=12)
sizes = st.integers(1, 2000)


def whole(accept: str, query: str, compact: bytes) -> bytes:
    """Return a list in one piece from its compact JSON, in the form of `accept`; for protobuf from the objects."""
    media, _, kind = accept.partition(";")
    if media == YAML:
        return from_json(compact)
    if media == PROTOBUF:
        found: Any = decode_json(classes_of("", "v1")["ConfigMapList"], compact)
        gvk = GroupVersionKind("", "v1", "ConfigMapList")
        items = found.items
        if kind:
            gvk = GroupVersionKind("meta.k8s.io", "v1", "PartialObjectMetadataList")
            items = [PartialObjectMetadata(metadata=item.metadata) for item in items]
        bodies = [protobuf.list_item(protobuf.encode_body(item)) for item in items]
        return protobuf.envelope(protobuf.list_head(found.metadata) + b"".join(bodies), gvk)
    return pretty(compact) if "pretty" in query else compact + b"\n"


@given(notes=notes, limits=st.tuples(sizes, sizes, sizes, st.integers(1, 5), sizes, sizes, sizes, st.integers(1, 12)))
@settings(max_examples=examples(40), deadline=None)
def test_a_list_is_the_same_in_slices_of_any_size(notes: list[dict[str, str]], limits: tuple[int, ...]) -> None:
    asyncio.run(compare(notes, limits))


async def compare(notes: list[dict[str, str]], limits: tuple[int, ...]) -> None:
    small = SmallServer()
    await small.start()
    for number, data in enumerate(notes):
        await small.note(f"n{number}", **data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(times, "unix_now", lambda: 2e9)
        compact = {
            (kind, query): (await small.get(NOTES + query, accept=JSON + kind)).body[:-1]
            for kind, query in (("", ""), (PARTIAL, ""), (TABLE, ""), (TABLE, "?includeObject=Object"))
        }
        names = (
            "REPRESENTATIONS_LIMIT",
            "WHOLE",
            "KEPT",
            "SLICE",
            "SLICE_BYTES",
            "YAML_SLICE_BYTES",
            "READY_SLICE_BYTES",
            "MANY",
        )
        for name, value in zip(names, limits, strict=True):
            patch.setattr(lists, name, value)
        for accept, query in FORMS:
            kind = "" if accept.startswith(PROTOBUF) else accept.removeprefix(JSON).removeprefix(YAML)
            expected = whole(accept, query, compact[kind, query.replace("?pretty=1", "")])
            assert (await small.get(NOTES + query, accept=accept)).body == expected
            packed = await small.get(NOTES + query, accept=accept, accept_encoding="gzip")
            assert (gzip.decompress(packed.body) if "content-encoding" in packed.headers else packed.body) == expected
    await small.stop()


@pytest.mark.parametrize(("accept", "query"), FORMS)
async def test_a_long_list_comes_in_small_pieces(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch, accept: str, query: str
) -> None:
    monkeypatch.setattr(times, "unix_now", lambda: 2e9)
    monkeypatch.setattr(lists, "WHOLE", 64 << 10)
    monkeypatch.setattr(lists, "READY_SLICE_BYTES", 128 << 10)
    monkeypatch.setattr(lists, "KEPT", 4 << 10)
    monkeypatch.setattr(lists, "REPRESENTATIONS_LIMIT", 512 << 10)
    await fill(small, 2100, 500)
    pieces = await pieces_of(small, NOTES + query, accept)
    assert len(pieces) > 5
    assert max(map(len, pieces)) < 256 << 10
    monkeypatch.setattr(lists, "WHOLE", 1 << 30)
    assert b"".join(pieces) == (await small.get(NOTES + query, accept=accept)).body


# Aborted lists


@pytest.mark.parametrize("accept", [JSON + TABLE, YAML + TABLE])
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_an_object_that_cannot_be_read_cuts_a_long_list_off(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, accept: str, encoding: str
) -> None:
    monkeypatch.setattr(lists, "WHOLE", 64 << 10)
    await fill(small, 500, 10)
    await store(small, "z", 5)
    with caplog.at_level(logging.CRITICAL, "steersman"):
        answer = await small.open("GET", NOTES, accept=accept, accept_encoding=encoding)
        assert answer.status == 200
        with pytest.raises(BodyAborted):
            await answer.read()
    assert small.server.requests.running == 0


@pytest.mark.parametrize("accept", [PROTOBUF, PROTOBUF + PARTIAL])
async def test_protobuf_is_all_made_once_before_the_answer_begins(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, accept: str
) -> None:
    monkeypatch.setattr(lists, "WHOLE", 1)
    await fill(small, 300, 10)
    await store(small, "z", 5)
    with caplog.at_level(logging.CRITICAL, "steersman"):
        assert (await small.get(NOTES, accept=accept)).status == 500


# Until the end


TARGET = f"{NOTES}?pretty=1"
"""12 MB of 6,000 objects: far more than the server encodes in advance."""


def exposed(metric: Metric, part: str) -> list[str]:
    """Return the lines of a metric that contain `part`."""
    return [line for line in metric.expose() if part in line]


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_long_answer_counts_until_its_end(
    start_server: Callable[..., Awaitable[SmallServer]], encoding: str
) -> None:
    small: SmallServer = await start_server(max_requests_in_flight=1)
    await fill(small, 6000)
    told, group = small.config.metrics, small.server.requests
    async with await small.open("GET", TARGET, user="alice", accept=JSON, accept_encoding=encoding) as answer:
        pieces = aiter(answer)
        size = len(await anext(pieces))
        assert group.running == 1
        assert (await small.get(NOTES, user="alice")).status == 429
        assert not exposed(told.sizes, "configmaps")
        size += sum([len(piece) async for piece in pieces])
    assert group.running == 0
    assert exposed(told.sizes, "_sum")[-1].endswith(f" {size}.0")
    assert (await small.get(f"{NOTES}?limit=1", user="alice")).status == 200


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_client_that_goes_away_ends_a_long_answer(small: SmallServer, encoding: str) -> None:
    await fill(small, 6000)
    async with await small.open("GET", TARGET, accept=JSON, accept_encoding=encoding) as answer:
        await anext(aiter(answer))
        assert small.server.requests.running == 1
    assert small.server.requests.running == 0


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_long_answer_is_cut_off_when_its_time_is_up(
    start_server: Callable[..., Awaitable[SmallServer]], encoding: str
) -> None:
    small: SmallServer = await start_server()
    await fill(small, 6000)
    answer = await small.open("GET", f"{TARGET}&timeout=300ms", accept=JSON, accept_encoding=encoding)
    assert answer.status == 200
    await small.server.requests.close()  # nobody reads
    with pytest.raises(BodyAborted):
        await answer.read()
    assert len(exposed(small.config.metrics.terminations, 'code="504"')) == 1


async def test_a_shutdown_waits_for_long_answers(small: SmallServer) -> None:
    await fill(small, 6000)
    answer = await small.open("GET", TARGET, accept=JSON)
    pieces = aiter(answer)
    await anext(pieces)
    stopping = asyncio.create_task(small.server.requests.close())
    await asyncio.sleep(0)
    assert not stopping.done()
    assert (await small.get(NOTES)).status == 503
    async for _ in pieces:
        pass
    await stopping


async def test_others_are_served_while_a_long_list_is_sent(small: SmallServer) -> None:
    await fill(small, 6000)
    reading = asyncio.create_task(pieces_of(small, NOTES, YAML))
    served = 0
    while not reading.done():
        assert (await small.get("/api/v1/namespaces/ns/configmaps/n00000")).status == 200
        served += 1
        await asyncio.sleep(0)
    assert served > 100


async def test_a_body_that_is_over_tells_those_who_come_late() -> None:
    body = StreamedBody(made())
    notified: list[str] = []
    body.on_request_end(lambda: notified.append("first"))
    body.on_request_end(lambda: notified.append("second"))
    assert [piece async for piece in body] == [b"a", b"bc"]
    assert body.size == 3
    assert notified == []
    await body.aclose()
    await body.aclose()
    body.on_request_end(lambda: notified.append("late"))
    assert notified == ["second", "first", "late"]


async def made() -> AsyncGenerator[bytes, None]:
    yield b"a"
    yield b"bc"


@pytest.mark.parametrize("watching", ["", "&watch=1&timeoutSeconds=-1"])
async def test_long_selectors_are_read_beside_the_loop(small: SmallServer, monkeypatch: Any, watching: str) -> None:
    threads: list[int] = []
    parse = labels.parse

    def noting(text: str) -> labels.Selector:
        threads.append(threading.get_ident())
        return parse(text)

    monkeypatch.setattr("steersman.endpoints.options.labels.parse", noting)
    for terms in (2, 2_000):
        selector = ",".join(f"!absent-{number}" for number in range(terms))
        answer = await small.get(f"/api/v1/namespaces/ns/configmaps?labelSelector={selector}{watching}")
        assert answer.status == 200
    assert threads[0] == threading.get_ident()
    assert threads[1] != threading.get_ident()
