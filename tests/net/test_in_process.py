"""The transport without a socket behaves like the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from steersman.net.in_process import InProcessClient
from steersman.net.message import BodyAborted, BodyTooLarge, Request, Response


async def echo(request: Request) -> Response:
    """Answer with a description of the request."""
    body = await request.body.read(1000)
    text = f"{request.method} {request.path} {request.query} {request.headers.get('x-a')}|".encode()
    return Response(201, [("x-b", "c")], text + body)


async def test_a_request_is_answered() -> None:
    response = await InProcessClient(echo).request("POST", "/a?b", [("x-a", "1")], b"body")
    assert (response.status, response.headers["x-b"]) == (201, "c")
    assert await response.read() == b"POST /a b 1|body"


async def test_the_length_of_a_body_is_told_once() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, body=str(request.headers.get("content-length")).encode())

    client = InProcessClient(handler)
    for given in ((), (("content-length", "4"),)):
        assert await (await client.request("POST", "/", given, b"body")).read() == b"4"
    assert await (await client.request("GET", "/")).read() == b"None"


async def test_a_request_body_may_be_an_iterator() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"bo"
        await asyncio.sleep(0)
        yield b"dy"

    response = await InProcessClient(echo).request("POST", "/", body=pieces())
    assert (await response.read()).endswith(b"|body")


async def test_a_request_body_that_fails_is_aborted() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"bo"
        raise KeyError("x")

    async def handler(request: Request) -> Response:
        with pytest.raises(BodyAborted):
            await request.body.read(100)
        return Response(200)

    assert (await InProcessClient(handler).request("POST", "/", body=pieces())).status == 200


async def test_a_body_over_the_limit_is_told() -> None:
    async def handler(request: Request) -> Response:
        with pytest.raises(BodyTooLarge):
            await request.body.read(3)
        return Response(413)

    assert (await InProcessClient(handler).request("POST", "/", body=b"body")).status == 413


async def test_lists_and_iterators_come_in_pieces() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    async def handler(request: Request) -> Response:
        return Response(200, [], [b"a", b"b"] if request.path == "/list" else pieces())

    client = InProcessClient(handler)
    for path in ("/list", "/iterator"):
        assert [piece async for piece in await client.request("GET", path)] == [b"a", b"b"]


class Pushed:
    """A body that the test writes."""

    def __init__(self) -> None:
        self.closes = 0

    def start(self, writer: Any) -> None:
        self.writer = writer

    def closed(self) -> None:
        self.closes += 1


async def test_a_pushed_body_is_read_as_it_is_written_and_told_when_the_client_leaves() -> None:
    body = Pushed()

    async def handler(request: Request) -> Response:
        return Response(200, [], body)

    async with await InProcessClient(handler).request("GET", "/") as response:
        events = aiter(response)
        body.writer.write(b"one")
        assert body.writer.buffered == 3
        assert await anext(events) == b"one"
        assert body.writer.buffered == 0
        body.writer.write(b"two")
        assert await anext(events) == b"two"
        assert body.closes == 0
    assert body.closes == 1
    body.writer.write(b"late")
    body.writer.end()
    assert body.closes == 1


async def test_a_cut_off_body_is_told() -> None:
    body = Pushed()

    async def handler(request: Request) -> Response:
        return Response(200, [], body)

    response = await InProcessClient(handler).request("GET", "/")
    body.writer.write(b"one")
    body.writer.abort()
    with pytest.raises(BodyAborted):
        await response.read()
    assert body.closes == 1


async def test_leaving_cancels_an_iterator() -> None:
    ended = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def handler(request: Request) -> Response:
        return Response(200, [], pieces())

    response = await InProcessClient(handler).request("GET", "/")
    assert await anext(aiter(response)) == b"x"
    await response.aclose()
    assert ended.is_set()


async def test_cancelling_the_request_cancels_the_handler() -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Response(200)

    asking = asyncio.ensure_future(InProcessClient(handler).request("GET", "/"))
    await entered.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert cancelled.is_set()


async def test_a_fast_writer_waits_for_a_slow_reader() -> None:
    written = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal written
        while True:
            written += 1
            yield bytes(1 << 16)

    async def handler(request: Request) -> Response:
        return Response(200, [], pieces())

    async with await InProcessClient(handler).request("GET", "/") as response:
        await asyncio.sleep(0.02)
        assert written < 100
        assert await anext(aiter(response)) == bytes(1 << 16)


async def test_failures_and_head_are_as_over_a_socket(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        if request.method == "HEAD":
            return Response(200, [], b"body")
        raise KeyError("broken")

    client = InProcessClient(handler)
    assert (await client.request("GET", "/")).status == 500
    assert "broken" in caplog.text
    assert await (await client.request("HEAD", "/")).read() == b""
