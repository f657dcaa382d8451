"""HTTP/1.1 as Go's net/http accepts and refuses it; the tables have kube-apiserver's answers to the same bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steersman.net.http1.body import ChunkReader, MalformedChunks
from steersman.net.limits import Limits
from steersman.net.message import BodyAborted, BodyTooLarge, Request, Response
from tests.net.listening import ListeningServer

HOST = b"Host: a\r\n"
END = b"Connection: close\r\n\r\n"
QUICK = Limits(linger=0.05)
BAD = "400 Bad Request"
TE = b"Transfer-Encoding: "


def get(target: bytes = b"/", version: bytes = b"HTTP/1.1", *, fields: bytes = HOST, method: bytes = b"GET") -> bytes:
    return method + b" " + target + b" " + version + b"\r\n" + fields + END


def post(fields: bytes, body: bytes, version: bytes = b"HTTP/1.1") -> bytes:
    return b"POST / " + version + b"\r\n" + HOST + b"Connection: close\r\n" + fields + b"\r\n" + body


CHUNKS = b"3\r\nabc\r\n0\r\n\r\n"
UNSUPPORTED = "501 Not Implemented", "Unsupported transfer encoding"
VERSION = ("505 HTTP Version Not Supported: unsupported protocol version",) * 2
REFUSED: dict[bytes, str | tuple[str, str]] = {
    **{
        post(TE + value + b"\r\n", CHUNKS): UNSUPPORTED
        for value in (
            b"gzip, chunked",
            b"gzip",
            b"identity",
            b"",
            b"chunked, chunked",
            b"chunked;x=y",
            b"xchunked",
            b",chunked",
            b"chunked\r\nTransfer-Encoding: chunked",
            b"gzip\r\nContent-Length: 3",
            "chun\u212aed".encode(),
            b"chunked\r\n ",
        )
    },
    **{
        post(b"Content-Length: " + value + b"\r\n", b"abc"): BAD
        for value in (
            b"-1",
            b"+3",
            b"0x3",
            b"",
            b"3_0",
            b"3, 3",
            b"3\r\nContent-Length: 4",
            b"9223372036854775808",
            b"9" * 40,
            "３".encode(),
            b"x\r\nTransfer-Encoding: chunked",
        )
    },
    post(TE + b"chunked\r\nTrailer: Content-Length\r\n", CHUNKS): BAD,
    post(TE + b"\x0bchunked\r\n", CHUNKS): BAD,
    **{
        line + b"\r\n" + HOST + b"\r\n": BAD
        for line in (
            b"GET  / HTTP/1.1",
            b"GET /  HTTP/1.1",
            b"GET / HTTP/1.1 ",
            b" GET / HTTP/1.1",
            b"GET\t/\tHTTP/1.1",
            b"GET",
            b"",
            b"\r\nGET / HTTP/1.1",
            b"\nGET / HTTP/1.1",
            b"GET /",
            b"GET / ",
            b"G(T / HTTP/1.1",
            b" / HTTP/1.1",
            b"GET / HTTP/1",
            b"GET / HTTP/1.",
            b"GET / HTTP/1.10",
            b"GET / HTTP/01.1",
            b"GET / http/1.1",
            b"GET / RTSP/1.0",
            b"SOURCE / ICE/1.0",
            b"GET / HTTP/1.1\r",
        )
    },
    **{
        get(target): BAD
        for target in (
            b"/\x00",
            b"/\x01",
            b"/\x7f",
            b"/%zz",
            b"/a%2",
            b"a",
            b"?a",
            b"://a/b",
            b"http://a:x/b",
            b"http://a[b/c",
            b"http://a b/c",
            b"http://[::1/b",
            b"http://[a]/b",
            b"http://u v@a/b",
        )
    },
    **{get(version=version): VERSION for version in (b"HTTP/0.9", b"HTTP/2.0", b"HTTP/2.1", b"HTTP/3.0")},
    **{
        get(fields=HOST + field): BAD
        for field in (
            b"A: b\rc\r\n",
            b"A: b\r\r\n",
            b"A\t: b\r\n",
            b": b\r\n",
            b"abc\r\n",
            b"A(: b\r\n",
            b"A@: b\r\n",
            b"A/b: c\r\n",
            b"A\xff: b\r\n",
            "é: b\r\n".encode(),
            b"A\x00: b\r\n",
            b"A: b\x00c\r\n",
            b"A: b\x01c\r\n",
            b"A: b\x7fc\r\n",
            b"A: b\x0bc\r\n",
            HOST,
        )
    },
    get(fields=b" Host: a\r\n"): BAD,
    **{get(fields=HOST + field): BAD for field in (b"A\r\n b: c\r\n", b"Transfer-Encoding\r\n : chunked\r\n")},
    get(fields=HOST + b"A : b\r\n"): (f"{BAD}: invalid header name",) * 2,
    **{get(fields=fields): (f"{BAD}: missing required Host header",) * 2 for fields in (b"", b"Host : a\r\n")},
    **{
        get(fields=b"Host: a" + char.encode("latin-1") + b"b\r\n"): (f"{BAD}: malformed Host header",) * 2
        for char in '"#/<>?@\\^`{|} \t\xff'
    },
    get(fields=b"Host: a\r\n b\r\n"): (f"{BAD}: malformed Host header",) * 2,
    b"GET /version\r\n": BAD,
}


async def tell(request: Request) -> Response:
    body = await request.body.read(1 << 20)
    fields = sorted(f"{name}={value}" for name, value in request.headers.items() if name != "connection")
    text = f"{request.method} {request.path} {request.query} {request.host} {' '.join(fields)}|"
    return Response(200, [], text.encode() + body)


@pytest.mark.parametrize("sent", REFUSED)
async def test_what_go_refuses_is_refused_in_its_words(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]], sent: Any
) -> None:
    expected = REFUSED[sent]
    status, text = (expected, expected) if isinstance(expected, str) else expected
    client = await http1(await serve(tell, limits=QUICK))
    client.send(sent)
    head, _, body = (await client.rest()).partition(b"\r\n\r\n")
    assert head.decode().split("\r\n") == [
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; charset=utf-8",
        "Connection: close",
    ]
    assert body.decode() == text


CHUNKED = "POST /  a transfer-encoding=chunked|abc"
TAKEN = {
    post(TE + b"Chunked\r\n", CHUNKS): "POST /  a transfer-encoding=Chunked|abc",
    post(TE + b"  chunked \t\r\n", CHUNKS): CHUNKED,
    post(TE + b"\r\n chunked\r\n", CHUNKS): CHUNKED,
    post(TE + b"chunked\r\nContent-Length: 3\r\n", CHUNKS): CHUNKED,
    post(b"Content-Length: 99\r\n" + TE + b"chunked\r\n", CHUNKS): CHUNKED,
    post(TE + b"chunked\r\nTrailer: X\r\n", b"3\r\nabc\r\n0\r\nX: y\r\nContent-Length: 1\r\n\r\n"): CHUNKED,
    post(TE + b"chunked\r\n", b"3;a=b\r\nabc\r\n0;c\r\n\r\n"): CHUNKED,
    post(TE + b"chunked\r\n", b"3  \r\nabc\r\n0000000000000000\r\n\r\n"): CHUNKED,
    post(b"Content-Length: 3\r\nContent-Length: 3\r\n", b"abc"): "POST /  a content-length=3|abc",
    post(b"Content-Length: 0003\r\n", b"abc"): "POST /  a content-length=0003|abc",
    get(b"http://b:1/c?d"): "GET /c d b:1 |",
    get(b"ftp://b/c"): "GET /c  b |",
    get(b"http:///c"): "GET /c  a |",
    get(b"http://u:p@b"): "GET   b |",
    get(b"http:c"): "GET   a |",
    get(b"//c"): "GET //c  a |",
    get(b"*"): "GET *  a |",
    get(b"/c#d"): "GET /c#d  a |",
    get(b"/\xff\\"): "GET /%ff%5C  a |",
    get(b"b:1", method=b"CONNECT"): "CONNECT   b:1 |",
    get(b"/c", method=b"CONNECT", fields=b""): "CONNECT /c   |",
    get(b"http://b/c", method=b"CONNECT"): "CONNECT //b/c  http: |",
    get(method=b"get"): "get /  a |",
    get(method=b"A!#"): "A!# /  a |",
    get(version=b"HTTP/1.9"): "GET /  a |",
    get(fields=HOST + b"A: b\r\n\tc\r\n"): "GET /  a a=b c|",
    get(fields=HOST + b"A: b\tc\r\n!#$%&'*+-.^_`|~: d\r\n"): "GET /  a !#$%&'*+-.^_`|~=d a=b\tc|",
    get(fields=b"Host: \r\n"): "GET /   |",
    b"GET / HTTP/1.1\nHost: a\nConnection: close\n\n": "GET /  a |",
    b"GET / HTTP/1.1\r\nHost: a\nConnection: close\r\n\n": "GET /  a |",
    get(fields=HOST + b"Expect: 100-continue, x\r\n"): "GET /  a expect=100-continue, x|",
}


@pytest.mark.parametrize("sent", TAKEN)
async def test_what_go_takes_is_taken_as_it_does(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]], sent: Any
) -> None:
    client = await http1(await serve(tell, limits=QUICK))
    client.send(sent)
    status, _, body = await client.response()
    assert (status, body.decode()) == (200, TAKEN[sent])


async def test_transfer_encoding_does_not_count_in_http_1_0(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(tell, limits=QUICK))
    client.send(post(TE + b"chunked\r\nContent-Length: 3\r\n", b"abc", b"HTTP/1.0"))
    answer = await client.rest()
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert b"Connection" not in answer
    assert answer.endswith(b"POST /  a content-length=3|abc")


async def test_options_of_everything_is_answered_without_a_handler(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    http2: Callable[..., Awaitable[Any]],
) -> None:
    async def handler(request: Request) -> Response:
        raise AssertionError("the handler is not asked")

    server = await serve(handler, limits=QUICK)
    client = await http1(server)
    client.send(get(b"*", method=b"OPTIONS"))
    assert (await client.response())[::2] == (200, b"")
    other = await http2(server)
    answer = await other.answer(other.request("OPTIONS", "*"))
    assert (answer.status, answer.body) == (200, b"")


async def test_an_unknown_expectation_is_answered_with_nothing_but_417(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(tell, limits=QUICK))
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n")
    status, headers, body = await client.response()
    assert (status, headers["connection"], body) == (417, "close", b"")


async def test_line_ends_behind_a_post_are_passed_over(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(tell, limits=QUICK))
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nb\r\n" + get(b"/c"))
    assert (await client.response())[2].endswith(b"|b")
    assert (await client.response())[2].startswith(b"GET /c")


@pytest.mark.parametrize(
    "trailer",
    [
        b"\r\n",
        b"\n",
        b"A: b\r\n\r\n",
        b"A: b\n\r\n",
        b"A: b\r\n\n",
        b"A: b\n\n",
        b"A: b\r\n c\r\n\r\n",
        b"A: b\r\n\t\n\n",
        b"A : b\r\n\r\n",
        b"A:b\n" * 1010 + b"\n",
    ],
)
async def test_a_trailer_ends_with_its_first_empty_line(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]], trailer: bytes
) -> None:
    client = await http1(await serve(tell, limits=QUICK))
    client.send(
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" + trailer + get(b"/c")
    )
    assert (await client.response())[2].endswith(b"|abc")
    assert (await client.response())[2] == b"GET /c  a |"


@pytest.mark.parametrize("step", [1, 3])
def test_a_trailer_may_come_bit_by_bit(step: int) -> None:
    sent = b"3\r\nabc\r\n0\r\nA: b\n\nGET / HTTP/1.1\r\n\r\nrest"
    reader = ChunkReader()
    taken, at, end = b"", 0, 0
    while not reader.complete:
        end = min(len(sent), end + step)
        piece, at = reader.read(sent[:end], at)
        taken += piece
    assert (taken, sent[at:]) == (b"abc", b"GET / HTTP/1.1\r\n\r\nrest")


async def test_a_length_may_go_on_with_nothing(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(tell, limits=QUICK))
    client.send(post(b"Content-Length: 3\r\n \r\n", b"abc"))
    assert (await client.response())[2] == b"POST /  a content-length=3 |abc"


MALFORMED_CHUNKS = {
    b"zz\r\n": "invalid byte in chunk length",
    b" 3\r\n": "invalid byte in chunk length",
    b"3 ;a\r\n": "invalid byte in chunk length",
    b"0x3\r\n": "invalid byte in chunk length",
    b"+3\r\n": "invalid byte in chunk length",
    b"\r\n": "empty hex number for chunk length",
    b"00000000000000003\r\n": "http chunk length too large",
    b"3\n": "chunked line ends with bare LF",
    b"3\r \r\n": "invalid CR in chunked line",
    b"3\r\nabcXX": "malformed chunked encoding",
    b"3\r\nabc\n0": "malformed chunked encoding",
    b"3;" + b"a" * 4094: "header line too long",
    b"1;%b\r\na\r\n" % (b"x" * 2000) * 9: "chunked encoding contains too much non-data",
    b"0\r\nX A b\r\n\r\n": 'malformed MIME header: missing colon: "X A b"',
    b"0\r\n A: b\r\n\r\n": 'malformed MIME header initial line: " A: b"',
    b"0\r\n" + b" " * 81 + b"\r\n\r\n": "message too large",
    b"0\r\nA b \r\n\r\n": 'malformed MIME header: missing colon: "A b "',
    b"0\r\nA\r\n b: c\r\n\r\n": 'malformed MIME header: missing colon: "A"',
    b'0\r\nA:"\\\x01\t\r\n\r\n': 'malformed MIME header line: "A:\\"\\\\\\x01"',
    b"0\r\n\xff\xc3\xa9\xc2\xa0: a\r\n\r\n": 'malformed MIME header line: "\\xffé\\u00a0: a"',
    b"0\r\nA: " + b"b" * 5000: "http: suspiciously long trailer after chunked body",
}


def read_through(data: bytes) -> None:
    reader = ChunkReader()
    at, before = 0, -1
    while at != before:
        before = at
        _, at = reader.read(data, at)


@pytest.mark.parametrize("sent", MALFORMED_CHUNKS)
def test_malformed_chunks_are_refused_in_gos_words(sent: Any) -> None:
    with pytest.raises(MalformedChunks) as caught:
        read_through(sent)
    assert str(caught.value) == MALFORMED_CHUNKS[sent]


async def test_a_malformed_chunk_gets_one_answer_and_the_connection_closes(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        try:
            await request.body.read(100)
        except BodyAborted as error:
            return Response(500, [], str(error).encode())
        return Response(200)

    client = await http1(await serve(handler, limits=QUICK))
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + get())
    answer = await client.rest()
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert answer.endswith(b"invalid byte in chunk length")


IN_CHUNKS = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


async def ok(request: Request) -> Response:
    return Response(200, [], b"ok")


async def test_an_answer_to_a_body_in_chunks_says_whether_the_connection_is_kept(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    server = await serve(ok, limits=Limits(max_discard=10, linger=0.3))
    client = await http1(server)
    client.send(IN_CHUNKS + b"3\r\nabc\r\n")
    await eventually(lambda: server.statistics().requests == 1)
    client.send(b"0\r\n\r\n" + get(b"/c"))
    status, headers, body = await client.response()
    assert (status, "connection" in headers, body) == (200, False, b"ok")
    assert (await client.response())[2] == b"ok"
    client = await http1(server)
    client.send(IN_CHUNKS + b"3\r\nabc\r\n")
    await eventually(lambda: server.statistics().requests == 3)
    client.send(b"10\r\n" + b"a" * 16 + b"\r\n0\r\n\r\n" + get(b"/c"))
    assert ended_with(await client.rest(), b"ok")


def ended_with(answer: bytes, body: bytes) -> bool:
    """Return True if this is one answer, after which the connection closes as announced."""
    return answer.count(b"HTTP/1.1") == 1 and b"\r\nConnection: close\r\n" in answer and answer.endswith(body)


async def test_a_body_that_is_too_large_closes_and_says_so(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    async def handler(request: Request) -> Response:
        with pytest.raises(BodyTooLarge):
            await request.body.read(10)
        return Response(413, [], b"large")

    client = await http1(await serve(handler, limits=Limits(max_discard=1000, linger=0.2)))
    client.send(IN_CHUNKS + b"10\r\n" + b"a" * 16 + b"\r\n")
    client.send((b"100\r\n" + b"a" * 256 + b"\r\n") * 300)
    assert ended_with(await client.rest(), b"large")


async def test_a_client_that_stops_in_the_middle_of_its_chunks_is_answered_nevertheless(
    serve: Callable[..., Awaitable[ListeningServer]], http1: Callable[..., Awaitable[Any]]
) -> None:
    client = await http1(await serve(ok, limits=QUICK))
    client.send(IN_CHUNKS + b"3\r\nabc\r\n")
    assert ended_with(await client.rest(), b"ok")


async def test_a_malformed_chunk_behind_an_answer_closes_and_the_answer_says_so(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    server = await serve(ok, limits=Limits(linger=0.3))
    client = await http1(server)
    client.send(IN_CHUNKS + b"3\r\nabc\r\n")
    await eventually(lambda: server.statistics().requests == 1)
    client.send(b"zz\r\n" + get())
    assert ended_with(await client.rest(), b"ok")


async def test_a_server_that_drains_does_not_wait_for_the_rest_of_a_body(
    serve: Callable[..., Awaitable[ListeningServer]],
    http1: Callable[..., Awaitable[Any]],
    eventually: Callable[[Callable[[], bool]], Awaitable[None]],
) -> None:
    server = await serve(ok, limits=Limits(linger=0.05))
    client = await http1(server)
    client.send(IN_CHUNKS + b"3\r\nabc\r\n")
    await eventually(lambda: server.statistics().requests == 1)
    await server.drain(5)
    assert ended_with(await client.rest(), b"ok")
