"""HTTP/1.1 over real sockets: requests byte by byte, and their responses."""

from __future__ import annotations

import asyncio
import http.client
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from steersman.net.limits import Limits
from steersman.net.message import BodyAborted, BodyTooLarge, Request, Response
from tests.net.listening import ListeningServer

GET = b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def echo(request: Request) -> Response:
    """Answer with a description of the request."""
    body = await request.body.read(1 << 20)
    text = f"{request.method} {request.path} {request.query} {request.host}|".encode()
    return Response(200, [("content-type", "text/plain")], text + body)


async def test_a_get_is_answered_with_length_date_and_canonical_names(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    client.send(GET % b"/a/b?x=%20y")
    raw = await client.reader.readuntil(b"\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")
    assert b"\r\nContent-Length: 26\r\n" in raw
    assert b"\r\nDate: " in raw
    assert await client.reader.readexactly(26) == b"GET /a/b x=%20y localhost|"


async def test_pipelined_requests_are_answered_in_order_though_the_first_is_slow(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/slow":
            await gate.wait()
        return Response(200, [], request.path.encode())

    client = await http1(await serve(handler))
    client.send(GET % b"/slow" + GET % b"/second" + GET % b"/third")
    gate.set()
    assert [(await client.response())[2] for _ in range(3)] == [b"/slow", b"/second", b"/third"]


async def test_thousands_of_pipelined_requests_do_not_exhaust_the_stack(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    client.send((GET % b"/") * 3000)
    for _ in range(3000):
        assert (await client.response())[0] == 200


async def test_a_chunked_request_body_is_put_together(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.send(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n" + GET % b"/next")
    assert (await client.response())[2].endswith(b"|abcde")
    assert (await client.response())[2].startswith(b"GET /next")


async def test_expect_continue_is_answered_when_the_handler_reads(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    client.send(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert (await client.head())[0] == 100
    client.send(b"abc")
    assert (await client.response())[2].endswith(b"|abc")


async def test_a_refusal_without_reading_sends_no_continue_and_closes(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def refuse(request: Request) -> Response:
        return Response(403, [], b"no")

    client = await http1(await serve(refuse, limits=Limits(linger=0.05)))
    client.send(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    status, headers, body = await client.response()
    assert (status, headers["connection"], body) == (403, "close", b"no")
    assert await client.rest() == b""


async def test_an_unknown_expectation_is_417(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    client.send(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: magic\r\n\r\n")
    assert (await client.head())[0] == 417


async def test_head_has_the_length_and_no_body(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    client.send(b"HEAD /abc HTTP/1.1\r\nHost: h\r\n\r\n" + GET % b"/next")
    status, headers = await client.head()
    assert (status, headers["content-length"]) == (200, "13")
    assert (await client.response())[2].startswith(b"GET /next")


@pytest.mark.parametrize("status", [204, 304])
async def test_bodiless_statuses_have_neither_body_nor_length(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]], status: int
) -> None:
    async def handler(request: Request) -> Response:
        return Response(status, [], b"ignored")

    client = await http1(await serve(handler))
    client.send(GET % b"/" + GET % b"/")
    for _ in range(2):
        got, headers = await client.head()
        assert got == status
        assert "content-length" not in headers
        assert "transfer-encoding" not in headers


async def test_an_async_iterator_is_sent_in_chunks(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.sleep(0)
        yield b"two"

    async def handler(request: Request) -> Response:
        return Response(200, [], pieces())

    client = await http1(await serve(handler))
    client.send(GET % b"/")
    status, headers, body = await client.response()
    assert (status, headers["transfer-encoding"], body) == (200, "chunked", b"onetwo")


async def test_an_http_1_0_client_gets_no_chunks_and_a_close(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def handler(request: Request) -> Response:
        return Response(200, [], pieces())

    client = await http1(await serve(handler))
    client.send(b"GET / HTTP/1.0\r\n\r\n")
    status, headers = await client.head()
    assert status == 200
    assert "transfer-encoding" not in headers
    assert await client.rest() == b"onetwo"


async def test_an_http_1_0_client_may_keep_the_connection(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    for _ in range(2):
        client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        status, headers, _ = await client.response()
        assert (status, headers["connection"]) == (200, "keep-alive")


async def test_a_failing_iterator_cuts_the_response_off(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        raise RuntimeError("broken")

    async def handler(request: Request) -> Response:
        return Response(200, [], pieces())

    client = await http1(await serve(handler))
    client.send(GET % b"/")
    await client.head()
    assert await client.rest() == b"3\r\none\r\n"
    assert "broken" in caplog.text


async def test_a_failing_handler_is_logged_and_answered_with_500(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(request: Request) -> Response:
        raise RuntimeError("broken")

    client = await http1(await serve(handler))
    with caplog.at_level(logging.ERROR):
        client.send(GET % b"/")
        status, _, body = await client.response()
    assert (status, body) == (500, b"Internal Server Error")
    assert "broken" in caplog.text


async def test_a_header_that_would_split_the_response_is_not_sent(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [("x-a", "b\r\nset-cookie: c")], b"")

    client = await http1(await serve(handler))
    client.send(GET % b"/")
    assert (await client.response())[0] == 500


@pytest.mark.parametrize(
    ("request_bytes", "status", "text"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, b"400 Bad Request: missing required Host header"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, b"400 Bad Request: malformed Host header"),
        (b"nonsense\r\n\r\n", 400, b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nbad header: x\r\n\r\n", 400, b"400 Bad Request: invalid header name"),
        (b"GET example HTTP/1.1\r\nHost: a\r\n\r\n", 400, b"400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, b"400 Bad Request"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"y" * 3000 + b"\r\n\r\n", 431, b"431 Request Header Fields Too Large"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"y" * 3000, 431, b"431 Request Header Fields Too Large"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"x: y\r\n" * 20 + b"\r\n", 431, b"431 Request Header Fields Too Large"),
    ],
)
async def test_malformed_requests_are_refused_and_the_connection_closed(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    request_bytes: bytes,
    status: int,
    text: bytes,
) -> None:
    limits = Limits(max_header_bytes=2048, max_header_count=10, linger=0.05)
    client = await http1(await serve(echo, limits=limits))
    client.send(request_bytes)
    got, headers = await client.head()
    assert (got, headers["connection"], await client.rest()) == (status, "close", text)


async def test_a_malformed_request_behind_a_good_one_lets_the_good_one_finish(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo, limits=Limits(linger=0.05)))
    client.send(GET % b"/good" + b"nonsense\r\n\r\n")
    assert (await client.response())[2].startswith(b"GET /good")
    assert (await client.head())[0] == 400


async def test_an_absolute_target_gives_path_and_host(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    client.send(b"GET http://example.org/a?b HTTP/1.1\r\nHost: other\r\n\r\n")
    assert (await client.response())[2] == b"GET /a b example.org|"


async def test_a_body_over_the_readers_limit_is_told(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        try:
            await request.body.read(4)
        except BodyTooLarge:
            return Response(413, [], b"too large")
        return Response(200)

    client = await http1(await serve(handler))
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n")
    assert (await client.response())[0] == 413
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde" + GET % b"/")
    assert (await client.response())[0] == 413
    assert (await client.response())[0] == 200


async def test_a_body_that_nobody_reads_is_thrown_away_up_to_a_bound(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200)

    client = await http1(await serve(handler, limits=Limits(max_discard=1000, linger=0.05)))
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n")
    assert (await client.response())[0] == 200
    client.send(b"x" * 900 + GET % b"/")
    assert (await client.response())[0] == 200
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1100\r\n\r\n")
    status, headers, _ = await client.response()
    assert (status, headers["connection"]) == (200, "close")


async def test_reading_stops_while_the_handler_does_not_take_the_body(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    limit = 64 << 10
    gate = asyncio.Event()
    sizes = []

    async def handler(request: Request) -> Response:
        await gate.wait()
        body: Any = request.body
        sizes.append(body.buffered)
        total = 0
        async for piece in request.body:
            total += len(piece)
        return Response(200, [], str(total).encode())

    client = await http1(await serve(handler, limits=Limits(stream_window=limit)))
    size = 16 << 20
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
    sending = asyncio.ensure_future(_send(client, size))
    await asyncio.wait([sending], timeout=0.2)
    assert not sending.done()
    gate.set()
    assert (await client.response())[2] == str(size).encode()
    await sending
    assert sizes[0] < limit + (512 << 10)


async def _send(client: Any, size: Any) -> None:
    for _ in range(size // 65536):
        client.send(bytes(65536))
        await client.writer.drain()


async def test_a_body_cut_off_by_the_client_ends_the_handler(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        try:
            await request.body.read(100)
        except (BodyAborted, asyncio.CancelledError):
            ended.set()
            raise
        return Response(200)

    client = await http1(await serve(handler))
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
    await asyncio.wait_for(started.wait(), 5)
    client.close()
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_disconnect_cancels_the_handler(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Response(200)

    server = await serve(handler)
    client = await http1(server)
    client.send(GET % b"/")
    await asyncio.wait_for(started.wait(), 5)
    assert server.statistics().running == 1
    client.close()
    await asyncio.wait_for(cancelled.wait(), 5)
    await asyncio.sleep(0)
    assert server.statistics().running == 0


async def test_a_large_body_reaches_a_slow_reader_whole(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    piece = bytes(range(256)) * 1024

    async def handler(request: Request) -> Response:
        return Response(200, [], [piece] * 40)

    client = await http1(await serve(handler), tls=False)
    client.send(GET % b"/" + GET % b"/")
    for _ in range(2):
        _, _, body = await client.response()
        assert body == piece * 40


async def test_an_upgrade_hands_over_the_connection_with_bytes_already_sent(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def take_over(connection: Any) -> None:
        while data := await connection.read():
            await connection.write(data.upper())
            if data.endswith(b"."):
                return

    async def handler(request: Request) -> Response:
        headers = [("connection", "Upgrade"), ("upgrade", request.headers["upgrade"])]
        return Response(101, headers, upgrade=take_over)

    client = await http1(await serve(handler))
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nearly")
    status, headers = await client.head()
    assert (status, headers["upgrade"], headers["connection"]) == (101, "SPDY/3.1", "Upgrade")
    assert await client.reader.readexactly(5) == b"EARLY"
    client.send(b"more.")
    assert await client.rest() == b"MORE."


async def test_an_upgrade_that_is_refused_leaves_the_connection_usable(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(echo))
    ask = b"GET /%d HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    client.send(ask % 1 + ask % 2 + GET % b"/3")
    for n in b"123":
        assert (await client.response())[2].startswith(b"GET /%c " % n)


async def test_an_upgraded_connection_sees_the_clients_end(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    ended = asyncio.Event()

    async def take_over(connection: Any) -> None:
        assert await connection.read() == b"bye"
        assert await connection.read() == b""
        ended.set()

    async def handler(request: Request) -> Response:
        return Response(101, [("connection", "Upgrade"), ("upgrade", "x")], upgrade=take_over)

    client = await http1(await serve(handler))
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
    await client.head()
    client.send(b"bye")
    client.close()
    await asyncio.wait_for(ended.wait(), 5)


async def test_idle_and_half_sent_requests_are_closed_in_time(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    server = await serve(echo, limits=Limits(header_timeout=0.15, idle_timeout=0.1, linger=0.05))
    fresh, half, idle = [await http1(server) for _ in range(3)]
    half.send(b"GET / HTTP/1.1\r\nHo")
    idle.send(GET % b"/")
    await idle.response()
    assert [await client.rest() for client in (fresh, half, idle)] == [b"", b"", b""]


async def test_response_close_closes(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"last", close=True)

    client = await http1(await serve(handler))
    client.send(GET % b"/")
    status, headers, body = await client.response()
    assert (status, headers["connection"], body) == (200, "close", b"last")
    assert await client.rest() == b""


async def test_the_standard_librarys_client_is_served(
    serve: Callable[..., Awaitable[ListeningServer]], authority: Any
) -> None:
    server = await serve(echo)

    def ask() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*server.address)
        connection.request(
            "POST", "/p", body=iter([b"a", b"b"]), headers={"Transfer-Encoding": "chunked"}, encode_chunked=True
        )
        response = connection.getresponse()
        result = response.status, response.read()
        connection.close()
        return result

    status, body = await asyncio.to_thread(ask)
    assert status == 200
    assert body.endswith(b"|ab")


class Held:
    """A body that keeps an object alive."""

    closed = False

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize("status", [600, 700, 999])
async def test_statuses_that_nobody_knows_are_sent(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    http2: Callable[..., Awaitable[Any]],
    status: int,
) -> None:
    async def handler(request: Request) -> Response:
        return Response(status, [], b"ok")

    server = await serve(handler)
    client = await http1(server)
    client.send(GET % b"/")
    assert (await client.response())[::2] == (status, b"ok")
    other = await http2(server)
    answer = await other.answer(other.request())
    assert (answer.status, answer.body) == (status, b"ok")


@pytest.mark.parametrize(("status", "headers"), [(0, []), (99, []), (1000, []), (200, [("a", "b\r\nc")])])
async def test_an_answer_that_cannot_be_sent_is_500_and_lets_go_of_its_body(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    http2: Callable[..., Awaitable[Any]],
    status: int,
    headers: list[Any],
) -> None:
    bodies = []

    async def handler(request: Request) -> Response:
        bodies.append(Held())
        return Response(status, headers, bodies[-1])

    server = await serve(handler)
    client = await http1(server)
    client.send(GET % b"/")
    assert (await client.response())[0] == 500
    other = await http2(server)
    assert (await other.answer(other.request())).status == 500
    assert [body.closed for body in bodies] == [True, True]
