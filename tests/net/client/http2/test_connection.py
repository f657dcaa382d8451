"""HTTP/2 requests to servers that send exactly the frames a test wants."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from hpack import Decoder, Encoder

from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.http2 import connection as connections
from steersman.net.client.http2.answer import WINDOW
from steersman.net.client.http2.connection import Http2Connection
from steersman.net.client.http2.health import Health, health
from steersman.net.client.http2.sending import CONNECTION_WINDOW
from steersman.net.client.proxy_environment import ProxyEnvironment
from steersman.net.client.tls import HTTP2
from steersman.net.client.transport import Address, Transport, bounded
from steersman.net.http2 import frames
from steersman.net.http2.frames import ErrorCode, Setting
from steersman.net.message import BodyAborted
from steersman.net.tls import Certificate

OK = [(":status", "200"), ("content-type", "text/plain")]


class Frame(NamedTuple):
    """A received frame."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes


class Peer:
    """The server side of one connection: writes frames and records received ones."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.encoder, self.decoder = Encoder(), Decoder()
        self.seen: list[Frame] = []

    async def frame(self) -> Frame:
        head = await self.reader.readexactly(9)
        length, flags, stream_id = frames.unpack_head(head, 0)
        self.seen.append(Frame(length & 0xFF, flags, stream_id, await self.reader.readexactly(length >> 8)))
        return self.seen[-1]

    async def until(self, kind: int) -> Frame:
        """Return the next frame of a kind; SETTINGS and PINGs before it are acknowledged."""
        while True:
            frame = await self.frame()
            if frame.kind in (frames.SETTINGS, frames.PING) and not frame.flags & frames.ACK:
                self.writer.write(frames.frame(frame.kind, frames.ACK, 0, b"" if frame.kind == 4 else frame.payload))
            if frame.kind == kind:
                return frame

    async def request(self) -> int:
        """Return the stream of the next request."""
        frame = await self.until(frames.HEADERS)
        self.fields = [(str(name), str(value)) for name, value in self.decoder.decode(frame.payload)]
        return frame.stream_id

    def hello(self, **settings: int) -> None:
        self.writer.write(frames.settings({Setting[name.upper()]: value for name, value in settings.items()}))

    def head(self, stream_id: int, fields: list[tuple[str, str]] | None = None, *, end: bool = False) -> None:
        block = self.encoder.encode(fields or OK)
        self.writer.write(frames.headers(stream_id, block, frames.END_STREAM if end else 0, 16384))

    def data(self, stream_id: int, data: bytes, *, end: bool = False) -> None:
        self.writer.write(frames.frame(frames.DATA, frames.END_STREAM if end else 0, stream_id, data))

    def answer(self, stream_id: int, body: bytes = b"ok") -> None:
        self.head(stream_id)
        self.data(stream_id, body, end=True)

    async def answer_all(self) -> None:
        while True:
            self.answer(await self.request())


Script = Callable[[Peer], Coroutine[Any, Any, None]]


class Origin:
    """A server whose connections each run the next script; the last script repeats."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self.scripts: list[Script] = []
        self.peers: list[Peer] = []
        self.failures: list[BaseException] = []
        self.ended = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.address = Address("", 0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        peer = Peer(reader, writer)
        self.peers.append(peer)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        try:
            assert await reader.readexactly(len(frames.PREFACE)) == frames.PREFACE
            await script(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended.set()
        except AssertionError as error:
            self.failures.append(error)
        finally:
            writer.close()
            self.tasks.discard(task)

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self._context)
        self.address = Address(*server.sockets[0].getsockname()[:2])
        return server


@pytest_asyncio.fixture
async def origin(certificate: Certificate) -> AsyncIterator[Origin]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert_file, certificate.key_file)
    context.set_alpn_protocols(["h2"])
    found = Origin(context)
    server = await found.start()
    yield found
    server.close()
    for task in list(found.tasks):
        task.cancel()
    await asyncio.gather(*found.tasks, return_exceptions=True)
    assert not found.failures


@pytest_asyncio.fixture
async def transport(client_context: Callable[..., ssl.SSLContext]) -> AsyncIterator[Transport]:
    context = client_context("h2", "http/1.1")
    found = Transport(lambda _: context, "localhost", ProxyEnvironment({}), protocols=HTTP2)
    yield found
    found.close()


Ask = Callable[..., Awaitable[bytes | None]]


@pytest.fixture
def ask(transport: Transport, origin: Origin) -> Ask:
    async def run(method: str = "GET", **options: Any) -> bytes | None:
        return await bounded(await begin(transport, origin, method, **options), 100 << 20, 20)

    return run


async def begin(transport: Transport, origin: Origin, method: str = "GET", **options: Any) -> Answer:
    headers = [("Host", "localhost"), ("User-Agent", "a"), ("Connection", "close"), *options.pop("headers", ())]
    return await transport.send(origin.address, method, "/x?y", headers, **options)


async def polite(peer: Peer) -> None:
    peer.hello()
    await peer.answer_all()


async def pieces(*all_of_them: bytes) -> AsyncIterator[bytes]:
    for each in all_of_them:
        yield each


async def test_one_connection_carries_many_requests_at_once(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        streams = [await peer.request() for _ in range(50)]
        for stream_id in reversed(streams):
            peer.answer(stream_id, b"%d" % stream_id)
        await peer.answer_all()

    origin.scripts = [script]
    results = await asyncio.gather(*(ask() for _ in range(50)))
    assert results == [b"%d" % stream_id for stream_id in range(1, 100, 2)]
    assert len(origin.peers) == 1
    assert origin.peers[0].fields == [
        (":authority", "localhost"),
        (":method", "GET"),
        (":path", "/x?y"),
        (":scheme", "https"),
        ("user-agent", "a"),
    ]


async def test_what_stands_in_no_head_is_not_sent(origin: Origin, ask: Ask) -> None:
    origin.scripts = [polite]
    with pytest.raises(ValueError, match="cannot be sent"):
        await ask(headers=[("X", "a\r\nb")])
    assert await ask() == b"ok"


async def test_another_connection_is_made_when_one_is_full(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello(max_concurrent_streams=2)
        first = await peer.request()
        peer.answer(first)
        streams = [await peer.request(), await peer.request()]
        for each in streams:
            peer.answer(each)
        await peer.answer_all()

    origin.scripts = [script]
    await ask()
    assert await asyncio.gather(*(ask() for _ in range(5))) == [b"ok"] * 5
    assert len(origin.peers) == 2  # how many the second one takes is not known yet


async def test_connections_of_a_server_that_takes_no_requests_are_closed(origin: Origin, ask: Ask) -> None:
    left = asyncio.Queue[None]()

    async def script(peer: Peer) -> None:
        peer.hello()
        stream = await peer.request()
        peer.hello(max_concurrent_streams=0)
        peer.answer(stream)
        try:
            await peer.until(frames.GOAWAY)
        finally:
            left.put_nowait(None)

    origin.scripts = [script]
    for _ in range(4):
        assert await ask() == b"ok"
    async with asyncio.timeout(5):
        for _ in range(3):
            await left.get()


async def test_bodies_wait_for_the_windows(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello(initial_window_size=1000)
        stream_id = await peer.request()
        got = 0
        while True:
            frame = await peer.until(frames.DATA)
            got += len(frame.payload)
            if frame.flags & frames.END_STREAM:
                break
            if frame.payload:
                peer.writer.write(frames.window_update(stream_id, len(frame.payload)))
                peer.writer.write(frames.window_update(0, len(frame.payload)))
        peer.answer(stream_id, b"%d" % got)
        await peer.answer_all()

    origin.scripts = [script, script]
    assert await ask("POST", whole=b"x" * 300_000) == b"300000"
    assert len([each for each in origin.peers[0].seen if each.kind == frames.DATA]) >= 300_000 // (1000 + 65535)


async def test_streams_wait_for_the_connection_in_turn(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello(initial_window_size=1 << 20)
        got: dict[int, int] = {}
        for _ in range(4):
            got[await peer.request()] = 0
        while got:
            frame = await peer.until(frames.DATA)
            got[frame.stream_id] += len(frame.payload)
            if frame.payload:
                peer.writer.write(frames.window_update(0, len(frame.payload)))
            if frame.flags & frames.END_STREAM:
                peer.answer(frame.stream_id, b"%d" % got.pop(frame.stream_id))
        await peer.answer_all()

    origin.scripts = [script]
    bodies = [ask("POST", body=pieces(*[b"x" * 10_000] * 20)) for _ in range(4)]
    assert await asyncio.gather(*bodies) == [b"200000"] * 4


async def test_who_does_not_read_holds_up_nobody_else(origin: Origin, transport: Transport, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        slow = await peer.request()
        peer.head(slow)
        for _ in range(WINDOW // 16384):
            peer.data(slow, b"x" * 16384)
        for _ in range(100):
            quick = await peer.request()
            peer.head(quick)
            for _ in range(20):
                peer.data(quick, b"y" * 16384)
            peer.data(quick, b"", end=True)
        update = await peer.until(frames.WINDOW_UPDATE)
        assert update.stream_id == slow
        peer.data(slow, b"x", end=True)
        await peer.answer_all()

    origin.scripts = [script]
    answer = await begin(transport, origin)
    for _ in range(100):
        assert len(await ask() or b"") == 20 * 16384
    assert len(await bounded(answer, 2 * WINDOW, 20) or b"") == WINDOW + 1


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ErrorCode.INTERNAL_ERROR, "stream error: stream ID 1; INTERNAL_ERROR; received from peer"),
        (77, "stream error: stream ID 1; unknown error code 0x4d; received from peer"),
    ],
)
async def test_a_reset_is_told_of(origin: Origin, ask: Ask, code: int, text: str) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        peer.writer.write(frames.rst_stream(await peer.request(), code))
        await peer.answer_all()

    origin.scripts = [script]
    with pytest.raises(BadAnswer) as caught:
        await ask()
    assert str(caught.value) == text
    assert await ask() == b"ok"
    assert len(origin.peers) == 1


async def test_what_was_refused_is_sent_again(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        peer.writer.write(frames.rst_stream(await peer.request(), ErrorCode.REFUSED_STREAM))
        await peer.answer_all()

    origin.scripts = [script]
    assert await ask("POST", whole=b"x") == b"ok"
    origin.peers.clear()


async def test_a_body_that_was_begun_is_not_sent_again(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        peer.writer.write(frames.rst_stream(await peer.request(), ErrorCode.REFUSED_STREAM))
        await peer.answer_all()

    origin.scripts = [script]
    with pytest.raises(BadAnswer, match=r"cannot retry err \[stream error: .*\] after Request.Body was written"):
        await ask("POST", body=pieces(b"x"))


async def test_a_server_that_leaves_finishes_what_it_has(origin: Origin, ask: Ask) -> None:
    async def leaving(peer: Peer) -> None:
        peer.hello()
        streams = [await peer.request() for _ in range(3)]
        peer.writer.write(frames.goaway(streams[0], ErrorCode.NO_ERROR))
        peer.answer(streams[0], b"first")
        await peer.until(frames.GOAWAY)  # the connection ends instead

    origin.scripts = [leaving, polite]
    assert Counter(await asyncio.gather(*(ask() for _ in range(3)))) == {b"first": 1, b"ok": 2}
    assert len(origin.peers) == 2
    assert await ask() == b"ok"
    assert len(origin.peers) == 2
    async with asyncio.timeout(20):
        await origin.ended.wait()


async def test_a_server_that_leaves_in_the_middle_says_why(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        await peer.request()
        peer.writer.write(frames.goaway(1, ErrorCode.ENHANCE_YOUR_CALM, 'too "much"'))
        await peer.writer.drain()

    origin.scripts = [script]
    with pytest.raises(BadAnswer) as caught:
        await ask()
    assert str(caught.value) == (
        "http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=ENHANCE_YOUR_CALM, "
        'debug="too \\"much\\""'
    )


async def test_the_first_request_is_not_sent_again_to_a_server_that_goes_in_anger(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        await peer.request()
        peer.writer.write(frames.goaway(0, ErrorCode.PROTOCOL_ERROR))
        await peer.until(frames.GOAWAY)

    origin.scripts = [script]
    with pytest.raises(BadAnswer, match=r"^http2: Transport received GOAWAY from server ErrCode:PROTOCOL_ERROR$"):
        await ask()
    assert len(origin.peers) == 1


async def test_a_server_that_hangs_up_is_told_of(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        await peer.request()

    origin.scripts = [script, polite]
    with pytest.raises(BadAnswer, match=r"^unexpected EOF$"):
        await ask()
    assert await ask() == b"ok"


async def test_a_kept_connection_that_has_ended_is_left(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        peer.answer(await peer.request())
        peer.writer.transport.abort()

    origin.scripts = [script, polite]
    assert await ask() == b"ok"
    await asyncio.gather(*origin.tasks)
    assert await ask("POST", whole=b"x", again=True) == b"ok"


async def test_a_server_that_hangs_up_each_time_is_not_asked_for_ever(origin: Origin, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        await peer.request()

    origin.scripts = [script]
    results = await asyncio.gather(*(ask("POST", whole=b"x", again=True) for _ in range(10)), return_exceptions=True)
    assert {str(each) for each in results} == {"unexpected EOF"}
    assert len(origin.peers) <= 11


async def test_a_dead_server_is_found_out(origin: Origin, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "health_of_environment", lambda: Health(0.05, 0.05))
    held = asyncio.Event()

    async def silent(peer: Peer) -> None:
        peer.hello()
        await held.wait()

    origin.scripts = [silent, polite]
    with pytest.raises(BadAnswer, match=r"^http2: client connection lost$"):
        await ask()
    held.set()
    assert await ask() == b"ok"


async def test_a_quiet_server_that_is_there_is_kept(origin: Origin, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "health_of_environment", lambda: Health(0.02, 20.0))

    async def slow(peer: Peer) -> None:
        peer.hello()
        stream_id = await peer.request()
        for _ in range(3):
            await peer.until(frames.PING)
        peer.answer(stream_id)
        await peer.answer_all()

    origin.scripts = [slow]
    assert await ask() == b"ok"


async def test_a_server_that_measures_the_bandwidth_is_not_answered_with_each_request(origin: Origin, ask: Ask) -> None:
    measuring, other = bytes((2, 4, 16, 16, 9, 14, 7, 7)), b"12345678"
    answered: list[tuple[bytes, float]] = []

    async def script(peer: Peer) -> None:
        peer.hello()
        stream_id = await peer.request()
        asked = time.monotonic()
        for payload in (measuring, other, measuring):
            peer.writer.write(frames.frame(frames.PING, 0, 0, payload))
        while len(answered) < 3:
            frame = await peer.until(frames.PING)
            assert frame.flags & frames.ACK
            answered.append((frame.payload, time.monotonic() - asked))
        peer.answer(stream_id)
        await peer.answer_all()

    origin.scripts = [script]
    assert await ask() == b"ok"
    assert [payload for payload, _ in answered] == [other, measuring, measuring]  # one of them waits, others do not
    assert answered[-1][1] >= connections.BANDWIDTH_SECONDS * 0.9


def test_the_environment_says_how_long_silence_may_last() -> None:
    assert health({}) == Health(30.0, 15.0)
    assert health({"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "0", "HTTP2_PING_TIMEOUT_SECONDS": "x"}) == Health(0.0, 15.0)


async def test_a_connection_that_nobody_uses_is_closed(
    origin: Origin, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.02)
    origin.scripts = [polite]
    assert await ask() == b"ok"
    async with asyncio.timeout(20):
        await origin.ended.wait()


async def test_who_does_not_wait_any_more_resets_the_stream(origin: Origin, transport: Transport, ask: Ask) -> None:
    came = asyncio.Event()

    async def script(peer: Peer) -> None:
        peer.hello(max_concurrent_streams=1)
        stream_id = await peer.request()
        came.set()
        reset = await peer.until(frames.RST_STREAM)
        assert (reset.stream_id, int.from_bytes(reset.payload)) == (stream_id, ErrorCode.CANCEL)
        peer.head(stream_id)  # on its way already
        await peer.until(frames.PING)  # which tells that the other one is there: it has room again
        await peer.answer_all()

    origin.scripts = [script, polite]
    task = asyncio.create_task(begin(transport, origin))
    await came.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await ask() == b"ok"
    assert len(origin.peers) == 2  # the slot is taken until the answer to the PING


async def test_an_answer_that_is_not_read_leaves_nothing(origin: Origin, transport: Transport, ask: Ask) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        while True:
            stream_id = await peer.request()
            peer.head(stream_id)
            for _ in range(8):
                peer.data(stream_id, b"x" * 16384)

    origin.scripts = [script]
    connection: Http2Connection | None = None
    for _ in range(50):
        answer = await begin(transport, origin)
        await answer.close()
        (kept,) = transport._pools.values()
        (connection,) = kept._multiplexed
    assert connection is not None
    assert not connection.streams
    assert connection.recv.left + connection.recv.unannounced == CONNECTION_WINDOW


async def test_a_body_that_is_cut_off_is_told_of(origin: Origin, transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        first = await peer.request()
        peer.head(first)
        peer.data(first, b"abc")
        peer.writer.write(frames.rst_stream(first, ErrorCode.INTERNAL_ERROR))
        second = await peer.request()
        peer.head(second, [*OK, ("content-length", "5")])
        peer.data(second, b"abc", end=True)
        third = await peer.request()
        peer.head(third, [*OK, ("content-length", "2")])
        peer.data(third, b"abc", end=True)
        await peer.answer_all()

    origin.scripts = [script]
    for text in (
        "stream error: stream ID 1; INTERNAL_ERROR; received from peer",
        "unexpected EOF",
        "net/http: server replied with more than declared Content-Length; truncated",
    ):
        answer = await begin(transport, origin)
        with pytest.raises(BodyAborted) as caught:
            await answer.read(100)
        assert str(caught.value) == text
        await answer.close()


async def test_heads_without_bodies(origin: Origin, transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        peer.hello()
        stream_id = await peer.request()
        peer.head(stream_id, [(":status", "103"), ("link", "x")])
        peer.head(stream_id, [*OK, ("content-length", "5"), ("connection", "close")], end=True)
        stream_id = await peer.request()
        peer.head(stream_id)
        peer.data(stream_id, b"a")
        peer.head(stream_id, [("x-trailer", "y")], end=True)

    origin.scripts = [script]
    answer = await begin(transport, origin, "HEAD")
    assert (answer.headers, answer.length) == ([*OK[1:], ("content-length", "5")], 5)
    assert await bounded(answer, 10, 20) == b""
    assert await bounded(await begin(transport, origin), 10, 20) == b"a"


def _block(*fields: tuple[str, str]) -> bytes:
    return Encoder().encode(list(fields))


def _headers(block: bytes, *, end: bool = True) -> bytes:
    return frames.frame(frames.HEADERS, frames.END_STREAM | (frames.END_HEADERS if end else 0), 1, block)


LIES: dict[str, bytes] = {
    "no settings": frames.frame(frames.PING, 0, 0, b"12345678"),
    "http/1.1": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "too long a frame": frames.settings({}) + frames.frame(frames.DATA, 0, 1, b"x" * 16385),
    "push": frames.settings({}) + frames.frame(frames.PUSH_PROMISE, frames.END_HEADERS, 1, b"\0\0\0\2\x82"),
    "idle stream": frames.settings({})
    + frames.frame(frames.HEADERS, frames.END_HEADERS, 7, _block((":status", "200"))),
    "even stream": frames.settings({}) + frames.frame(frames.DATA, 0, 2, b"x"),
    "no fields": frames.settings({}) + _headers(b"\xff\xff\xff"),
    "no status": frames.settings({}) + _headers(_block(("a", "b"))),
    "odd status": frames.settings({}) + _headers(_block((":status", "2x0"))),
    "long status": frames.settings({}) + _headers(_block((":status", "2000"))),
    "capitals": frames.settings({}) + _headers(_block((":status", "200"), ("A", "b"))),
    "line break": frames.settings({}) + _headers(_block((":status", "200"), ("a", "b\r\nc: d"))),
    "pseudo": frames.settings({}) + _headers(_block((":status", "200"), (":path", "/"))),
    "interim at the end": frames.settings({}) + _headers(_block((":status", "100"))),
    "body before head": frames.settings({}) + frames.frame(frames.DATA, 0, 1, b"x"),
    "padding": frames.settings({}) + frames.frame(frames.HEADERS, frames.PADDED | frames.END_HEADERS, 1, b"\x09x"),
    "window of 0": frames.settings({}) + frames.window_update(0, 0),
    "window too large": frames.settings({}) + frames.window_update(0, frames.MAX_WINDOW),
    "stream window of 0": frames.settings({}) + frames.window_update(1, 0),
    "settings of 5": frames.frame(frames.SETTINGS, 0, 0, b"12345"),
    "many fields": frames.settings({}) + _headers(_block((":status", "200"), *[("a", "b")] * 1001)),
    "many settings": frames.settings({}) * 3000,
    "many pings": frames.settings({}) + frames.frame(frames.PING, 0, 0, b"12345678") * 3000,
    "many updates": frames.settings({}) + frames.window_update(1, 1) * 60_000,
    "empty data": frames.settings({})
    + _headers(_block((":status", "200")))[:4]
    + b"\x04"
    + _headers(_block((":status", "200")))[5:]
    + frames.frame(frames.DATA, 0, 1) * 3000,
    "endless head": frames.settings({})
    + _headers(b"", end=False)
    + frames.frame(frames.CONTINUATION, 0, 1, b"\x00\x01a\x7f\x81\x7d" + b"x" * 16000) * 100,
    "head in crumbs": frames.settings({}) + _headers(b"", end=False) + frames.frame(frames.CONTINUATION, 0, 1) * 3000,
    "interim without end": frames.settings({})
    + frames.frame(frames.HEADERS, frames.END_HEADERS, 1, _block((":status", "103"))) * 1100,
    "more than the window": frames.settings({})
    + frames.frame(frames.HEADERS, frames.END_HEADERS, 1, _block((":status", "200")))
    + frames.frame(frames.DATA, 0, 1, b"x" * 16384) * 70,
}


async def _read_late(transport: Transport, origin: Origin) -> None:
    """Read an answer after the server has finished."""
    async with asyncio.timeout(20):
        answer = await begin(transport, origin)
        await asyncio.gather(*origin.tasks)
        try:
            await answer.read(100 << 20)
        finally:
            await answer.close()


@pytest.mark.parametrize("lie", LIES)
async def test_lies_are_found_out(origin: Origin, transport: Transport, lie: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.until(frames.HEADERS) if lie != "no settings" else None
        peer.writer.write(LIES[lie])
        while True:
            frame = await peer.frame()
            if frame.kind == frames.RST_STREAM:
                return

    origin.scripts = [script]
    with pytest.raises((BadAnswer, BodyAborted)):
        await _read_late(transport, origin)
    transport.close()
    async with asyncio.timeout(20):
        await asyncio.gather(*origin.tasks, return_exceptions=True)


async def test_nobody_waits_for_more_than_one_new_connection(origin: Origin, transport: Transport, ask: Ask) -> None:
    origin.scripts = [polite]
    assert await asyncio.gather(*(ask() for _ in range(60))) == [b"ok"] * 60
    assert len(origin.peers) == 1


async def test_streams_of_a_server_without_bounds_are_bounded(origin: Origin, ask: Ask) -> None:
    origin.scripts = [polite]
    await ask()
    assert connections.MOST_STREAMS == 1000
