"""Tests of the channel: orders of a page, and the ends of its streams."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from steersman.api.core.v1 import ConfigMap, Secret
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import CONFIG_MAPS, SECRETS
from steersman.client.transport import Unreachable
from steersman.inspector.channel import MAX_STREAMS
from steersman.inspector.lines import MAX_LINE
from steersman.testing import Environment, User
from tests.inspector.front_client import ScriptedAnswer, ScriptedServer, Visit, Visitor

SHORT = "/api/v1/namespaces/default"
WATCH = "/api/v1/namespaces/default/configmaps?watch=true"


def config_map(name: str, size: int = 0) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"x": "y" * size})


async def name_of_next(page: Any, number: int) -> str:
    (event,) = await page.lines(number)
    name: str = event["object"]["metadata"]["name"]
    return name


async def test_several_streams_share_the_channel(visitor: Visitor, client: Client) -> None:
    page = await visitor.channel()
    version = (await client.list(CONFIG_MAPS)).metadata.resource_version
    await page.open(1, f"{WATCH}&resourceVersion={version}")
    await page.open(2, f"/api/v1/secrets?watch=true&resourceVersion={version}", accept="application/json")
    await client.create(CONFIG_MAPS, config_map("a"))
    assert await name_of_next(page, 1) == "a"
    await client.create(SECRETS, Secret(metadata=ObjectMeta(name="b", namespace="default")))
    assert await name_of_next(page, 2) == "b"
    await page.close(1)
    await page.open(3, SHORT)
    assert (await page.lines(3))[0]["kind"] == "Namespace"
    assert await page.end_of(3) == {"code": 200, "message": ""}


async def test_a_new_order_of_an_id_ends_the_stream_before(visitor: Visitor, client: Client) -> None:
    page = await visitor.channel()
    version = (await client.list(CONFIG_MAPS)).metadata.resource_version
    await page.open(1, f"{WATCH}&resourceVersion={version}")
    await client.create(CONFIG_MAPS, config_map("a"))
    assert await name_of_next(page, 1) == "a"
    await page.open(1, f"/api/v1/secrets?watch=true&resourceVersion={version}")
    await page.open(2, SHORT)
    await page.end_of(2)
    await client.create(CONFIG_MAPS, config_map("b"))
    await client.create(SECRETS, Secret(metadata=ObjectMeta(name="c", namespace="default")))
    assert await name_of_next(page, 1) == "c"


@pytest.mark.parametrize(
    "order",
    [
        *("", "null", "[]", "{}", "\x00", "[" * 10_000, "{" * 16_000, '{"op":"open"}', '{"op":"open","id":"1"}'),
        *('{"op":"open","id":1.5}', '{"op":"open","id":1e400}', '{"op":"x","id":1}', '{"op":"open","id":1,"path":7}'),
    ],
)
async def test_anything_else_than_an_order_ends_the_channel(visitor: Visitor, order: str) -> None:
    page = await visitor.channel()
    await page.socket.send(order)
    with pytest.raises(ConnectionClosed):
        await page.next()
    again = await visitor.channel()
    await again.open(1, SHORT)
    assert (await again.lines(1))[0]["kind"] == "Namespace"


async def test_a_long_order_ends_the_channel(visitor: Visitor) -> None:
    page = await visitor.channel()
    await page.open(1, "/" + "x" * (16 << 10))
    with pytest.raises(ConnectionClosed):
        await page.next()


@pytest.mark.parametrize(
    "path", ["", "x", "api/v1", "http://evil/", "@evil", "/a b", "/a\r\nHost: evil", "/ü", "/a/../b"]
)
async def test_other_paths_are_refused(visit: Visit, path: str) -> None:
    server = ScriptedServer(ScriptedAnswer())
    page = await (await visit(server)).channel()
    await page.open(1, path)
    assert (await page.end_of(1))["code"] == 400
    assert server.requests == []


@pytest.mark.parametrize("accept", ["a\r\nImpersonate-User: root", "a\nb", "\x00", "ü"])
async def test_fields_cannot_be_added(visit: Visit, accept: str) -> None:
    server = ScriptedServer(ScriptedAnswer())
    page = await (await visit(server)).channel()
    await page.open(1, "/a", accept=accept)
    assert (await page.end_of(1))["code"] == 400
    assert server.requests == []


async def test_an_unknown_source_is_not_found(visitor: Visitor) -> None:
    page = await visitor.channel()
    await page.open(1, source="secrets")
    assert await page.end_of(1) == {"code": 404, "message": "there is no such source"}


async def test_closing_what_is_not_open_does_nothing(visitor: Visitor) -> None:
    page = await visitor.channel()
    await page.close(7)
    await page.open(7, SHORT)
    assert (await page.end_of(7))["code"] == 200
    await page.close(7)
    await page.open(7, SHORT)
    assert (await page.end_of(7))["code"] == 200


async def test_streams_are_limited_and_ended_ones_do_not_count(visitor: Visitor) -> None:
    page = await visitor.channel()
    for number in range(MAX_STREAMS):
        await page.open(number, f"{WATCH}&resourceVersion=0")
    await page.open(99, SHORT)
    assert (await page.end_of(99)) == {"code": 429, "message": "a page has at most 32 streams"}
    await page.close(5)
    await page.open(99, SHORT)
    assert (await page.end_of(99))["code"] == 200


async def test_a_refusal_has_the_words_of_the_server(visit: Visit) -> None:
    async with Environment(users=[User("joe", groups=("system:authenticated",))]) as environment:
        server = environment.plane.server
        assert server is not None
        visitor = await visit(InProcessTransport(server.handler, environment.token("joe")))
        page = await visitor.channel()
        await page.open(1, "/api/v1/secrets?watch=true")
        end = await page.end_of(1)
        assert end["code"] == 403
        assert end["message"].startswith('secrets is forbidden: User "joe" cannot')


async def test_errors_that_are_no_status_are_cut(visit: Visit) -> None:
    answer = ScriptedAnswer(500, {"content-type": "text/html"}, [b"<b>" * 1_000] * 10_000)
    page = await (await visit(ScriptedServer(answer))).channel()
    await page.open(1, "/a")
    end = await page.end_of(1)
    assert end["code"] == 500
    assert len(end["message"]) < 10_000
    assert answer.taken < 100
    assert answer.closed


@pytest.mark.parametrize(
    ("pieces", "end"),
    [
        ([b'{"a":1}\n', Unreachable("cut off")], {"code": 503, "message": "cut off"}),
        ([b'{"a":1}\n', b"<html>\n"], {"code": 502, "message": "the response is not JSON"}),
        ([b'{"a":1}\n', b'{"a":'], {"code": 502, "message": "the response is not JSON"}),
        ([b'{"a":1}\n', b'{"a":"\xff"}\n'], {"code": 502, "message": "the response is not JSON"}),
        ([b'{"a":1}\n', b"[" * 100_000 + b"\n"], {"code": 502, "message": "the response is not JSON"}),
        (
            [b'{"a":1}\n', *([b'"' + b"x" * MAX_LINE] * 2)],
            {"code": 502, "message": "a line of the response is too long for the page"},
        ),
    ],
)
async def test_faults_of_the_server_end_one_stream(visit: Visit, pieces: list[Any], end: dict[str, Any]) -> None:
    answer = ScriptedAnswer(pieces=pieces)
    page = await (await visit(ScriptedServer(answer))).channel()
    await page.open(1, "/a")
    assert await page.lines(1) == [{"a": 1}]
    assert await page.end_of(1) == end
    assert answer.closed
    await page.open(1, "/a")
    assert await page.lines(1) == [{"a": 1}]


async def test_a_failing_source_ends_its_stream_and_is_logged(visit: Visit, caplog: pytest.LogCaptureFixture) -> None:
    server = ScriptedServer(ZeroDivisionError("a fault"))
    page = await (await visit(server)).channel()
    await page.open(1, "/a")
    assert (await page.end_of(1))["code"] == 500
    assert "ZeroDivisionError" in caplog.text
    await page.open(2, source="nothing")
    assert (await page.end_of(2))["code"] == 404


async def test_a_server_that_comes_back_is_found_again(visit: Visit, tmp_path: Path) -> None:
    user = User("joe", token="of-joe", groups=("system:masters",))
    async with Environment(users=[user], folder=tmp_path, listen=True) as environment:
        kubeconfig = environment.kubeconfig("joe")
        port = int(environment.url.rpartition(":")[2])
        page = await (await visit(TLSTransport.from_kubeconfig(kubeconfig))).channel()
        await page.open(1, f"{WATCH}&resourceVersion=0")
        await page.open(2, SHORT)
        assert (await page.end_of(2))["code"] == 200
    assert (await page.end_of(1))["code"] in (200, 503)
    await page.open(2, SHORT)
    assert (await page.end_of(2))["code"] == 503
    async with Environment(users=[user], folder=tmp_path, listen=True, secure_port=port):
        await page.open(2, SHORT)
        assert (await page.end_of(2))["code"] == 200


async def test_a_page_that_reads_nothing_holds_little_memory(visit: Visit) -> None:
    line = json.dumps({"x": "y" * 100_000}).encode() + b"\n"
    answer = ScriptedAnswer(pieces=[line] * 10_000)
    visitor = await visit(ScriptedServer(answer))
    page = await visitor.channel(max_queue=1)
    page.socket.transport.pause_reading()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(MAX_STREAMS + 100):
        await page.open(number, "/a")
    last = -1
    while answer.taken != last:
        last = answer.taken
        for _ in range(500):
            await asyncio.sleep(0)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert answer.taken < 200
    assert held < 16 << 20


async def test_a_page_that_leaves_closes_its_streams(visit: Visit) -> None:
    closed = asyncio.Event()

    class Endless(ScriptedAnswer):
        async def pieces(self) -> AsyncGenerator[bytes, None]:
            yield b"{}\n"
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            closed.set()

    visitor = await visit(ScriptedServer(Endless()))
    page = await visitor.channel()
    await page.open(1, "/a")
    await page.lines(1)
    await page.socket.close()
    async with asyncio.timeout(10):
        await closed.wait()


async def test_the_end_of_the_front_ends_all_streams(visitor: Visitor) -> None:
    before = asyncio.all_tasks()
    page = await visitor.channel()
    await page.open(1, f"{WATCH}&resourceVersion=0")
    await page.open(2, source="cluster")
    await page.open(3, source="rates")
    await page.lines(2)
    await visitor.front.stop()
    await page.socket.wait_closed()
    names = {each.get_name() for each in asyncio.all_tasks() - before}
    assert not {each for each in names if "informer" in each or "usage" in each}


async def test_large_objects_arrive_whole(visitor: Visitor, client: Client) -> None:
    version = (await client.list(CONFIG_MAPS)).metadata.resource_version
    page = await visitor.channel()
    await page.open(1, f"{WATCH}&resourceVersion={version}")
    await client.create(CONFIG_MAPS, config_map("a", 1_000_000))
    (event,) = await page.lines(1)
    assert len(event["object"]["data"]["x"]) == 1_000_000
