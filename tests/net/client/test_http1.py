"""HTTP/1.1 requests to servers that send exactly the bytes a test wants."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.dial import DialError, dial, resolve
from steersman.net.client.http1 import MAX_INTERIM, Http1Answer, UnaskedUpgrade, request_head, send
from steersman.net.message import BodyAborted

Ask = Callable[..., Awaitable[Answer]]


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    """Yield `ask(answer, method)`: the client's result for a server that sends `answer` and closes the connection."""
    servers: list[asyncio.Server] = []
    answers: list[Answer] = []

    async def run(data: bytes, method: str = "GET", fields: tuple[tuple[str, str], ...] = (), **options: Any) -> Answer:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            step = 7 if len(data) < 10_000 else 4096
            for at in range(0, len(data), step):
                writer.write(data[at : at + step])
                await writer.drain()
                await asyncio.sleep(0)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        servers.append(server)
        connection = await dial("127.0.0.1", server.sockets[0].getsockname()[1])
        answer = await send(connection, method, "/", [("Host", "x"), *fields], **options)
        answers.append(answer)
        return answer

    yield run
    for answer in answers:
        await answer.close()
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", b"hello"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
)
async def test_bodies_end_where_the_head_says(ask: Ask, data: bytes, body: bytes) -> None:
    answer = await ask(data)
    assert answer.status in (200, 204)
    assert "link" not in dict(answer.headers)
    assert await answer.read(100) == body


async def test_fields_keep_their_text(ask: Ask) -> None:
    answer = await ask("HTTP/1.1 200 OK\r\nX-A: grün\r\nX-A: b\r\nContent-Length: 0\r\n\r\n".encode())
    assert answer.headers == [("x-a", "grün"), ("x-a", "b"), ("content-length", "0")]
    assert request_head("GET", "/", [("X-A", "grün")]) == "GET / HTTP/1.1\r\nX-A: grün\r\n\r\n".encode()


async def test_what_framed_a_body_is_not_told(ask: Ask) -> None:
    chunks = b"3\r\nabc\r\n0\r\nA: b\n\n\r\n\r\n"
    answer = await ask(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    assert (answer.headers, await answer.read(100)) == ([], b"abc")
    answer = await ask(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc")
    assert (answer.headers, await answer.read(100)) == ([("content-length", "3")], b"abc")


async def test_what_head_answers_has_no_body(ask: Ask) -> None:
    answer = await ask(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", "HEAD")
    assert (answer.length, await answer.read(100)) == (500, b"")


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
    ],
)
async def test_a_body_that_is_cut_off_is_told(ask: Ask, data: bytes) -> None:
    with pytest.raises((BodyAborted, BadAnswer)):
        await (await ask(data)).read(100)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "^EOF$"),
        (b"HTTP/1.1 200 OK\r\nA: b", "^net/http: HTTP/1.x transport connection broken: unexpected EOF$"),
        (b"HTTP/1.1 200 OK\r\nA", '^net/http: HTTP/1.x transport connection broken: malformed MIME.* colon: "A"$'),
        (b"HTTP/1.1 103 E\r\n\r\nok", 'malformed HTTP response "ok"$'),
        (b"HTTP/1.1 103 E\r\n\r\n", "unexpected EOF$"),
        (b"hello world", 'malformed HTTP status code "world"$'),
        (b"SSH-2.0-x\r\n", '^net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-x"$'),
        (b"HTTP/1.1 20 OK\r\n\r\n", 'malformed HTTP status code "20"$'),
        (b"HTTP/1.1 +20 OK\r\n\r\n", 'malformed HTTP status code "\\+20"$'),
        (b"HTTP/11 200 OK\r\n\r\n", 'malformed HTTP version "HTTP/11"$'),
        (b"HTTP/1.1 200 OK\r\nA\r\n\r\n", 'malformed MIME header: missing colon: "A"$'),
        (b"HTTP/1.1 200 OK\r\nA: b\x01\r\n\r\n", "malformed MIME header line"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "unsupported transfer encoding"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chun\u212aed\r\n\r\n".encode(), 'transfer encoding: "chun\u212aed"$'),
        (
            b"HTTP/1.1 200 OK\r\n" + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n",
            'too many transfer encodings: \\["chunked" "chunked"\\]$',
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 'bad Content-Length "x"$'),
        (b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", 'invalid empty Content-Length ""$'),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            'http: message cannot contain multiple Content-Length headers; got \\["3" "4"\\]$',
        ),
        (b"HTTP/1.1 200 OK\r\nA\r\n b: c\r\n\r\n", 'missing colon: "A"$'),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1100 + b"\r\n", "net/http: server response headers exceeded"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: %b\r\n\r\n" % (b"x" * 1_100_000), "net/http: server response headers exceeded"),
        (b"HTTP/1.1 103 E\r\n\r\n" * (MAX_INTERIM + 1), "net/http: too many 1xx informational responses$"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: a, content-length\r\n\r\n",
            'bad trailer key "Content-Length"$',
        ),
    ],
)
async def test_what_is_no_answer(ask: Ask, data: bytes, message: str) -> None:
    with pytest.raises(BadAnswer, match=message):
        await ask(data)


@pytest.mark.parametrize("data", [b"\0" * 900_000 + b"\n", b"HTTP/1.1 200 OK\r\nA" + b"b" * 900_000 + b"\r\n\r\n"])
async def test_an_error_quotes_no_more_than_a_few_lines(ask: Ask, data: bytes) -> None:
    with pytest.raises(BadAnswer, match="malformed") as caught:
        await ask(data)
    assert len(str(caught.value)) <= 2048


async def test_bodies_of_many_small_chunks_are_taken_a_few_at_a_time(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    answers = [await ask(head + b"1\r\n \r\n" * 4_000 + b"0\r\n\r\n") for _ in range(12)]
    loop, taken, turns = asyncio.get_running_loop(), [0], [0]
    take = Http1Answer._take

    def counted(answer: Http1Answer) -> tuple[bytes, bool]:
        taken[0] += 1
        return take(answer)

    def turn() -> None:
        turns.append(taken[0] - sum(turns))
        loop.call_soon(turn)

    monkeypatch.setattr(Http1Answer, "_take", counted)
    loop.call_soon(turn)
    bodies = await asyncio.gather(*(each.read(1 << 20) for each in answers))
    monkeypatch.undo()
    assert all(len(each) == 4_000 for each in bodies)
    assert max(turns) <= 48  # all begin in one turn


@pytest.mark.parametrize("status", [0, 99, 200, 599, 600, 700, 999])
@pytest.mark.parametrize("behind", [b"", b"garbage", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_any_status_and_bytes_behind_a_complete_answer_are_taken(ask: Ask, status: int, behind: bytes) -> None:
    answer = await ask(b"HTTP/1.1 %03d X\r\nContent-Length: 2\r\n\r\nok%b" % (status, behind))
    assert (answer.status, await answer.read(100)) == (status, b"ok")


async def test_what_follows_an_upgrade_is_kept(ask: Ask) -> None:
    data = b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfirst bytes"
    answer: Any = await ask(data, fields=(("Connection", "Upgrade"), ("Upgrade", "x")))
    assert answer.status == 101
    assert b"first bytes".startswith(answer.leftover)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (b"", "internal error: 101 switching protocols response with non-writable body"),
        (b"Upgrade: x\r\n", "internal error: 101 switching protocols response with non-writable body"),
        (b"Connection: a, upgrade\r\nUpgrade: x\r\n", 'backend tried to switch protocol "x" when "" was requested'),
        (b"Connection: Upgrade\r\nUpgrade: \xe4\r\n", 'backend tried to switch to invalid protocol "\xe4"'),
    ],
)
async def test_an_upgrade_that_nobody_asked_for_is_refused(ask: Ask, fields: bytes, message: str) -> None:
    with pytest.raises(UnaskedUpgrade) as refused:
        await ask(b"HTTP/1.1 101 Switching\r\n%b\r\nfirst bytes" % fields)
    assert str(refused.value) == message


async def test_interim_answers_are_passed_over(ask: Ask) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" * MAX_INTERIM
    answer = await ask(interim + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert (answer.status, await answer.read(100)) == (200, b"ok")


@pytest.mark.parametrize("value", ["a\r\nB: c", "a\nB: c", "a\0"])
def test_no_field_smuggles_another(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        request_head("GET", "/", [("A", value)])


async def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(DialError, match=rf"^dial tcp 127\.0\.0\.1:{port}: connect: connection refused$"):
        await dial("127.0.0.1", port)
    with pytest.raises(DialError, match=r"^lookup no-such-host\.invalid: no such host$"):
        await resolve("no-such-host.invalid")


@pytest.mark.parametrize(
    "host", ["0177.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "127.0.0.01", "1.2.3.4.5"]
)
async def test_what_only_the_c_library_takes_for_an_address_is_none(host: str) -> None:
    with pytest.raises(DialError, match="no such host"):
        await resolve(host)


async def test_addresses_are_themselves() -> None:
    assert [await resolve(host) for host in ("127.0.0.1", "::ffff:127.0.0.1")] == [["127.0.0.1"], ["::ffff:127.0.0.1"]]
