"""However much input one client sends in one read, other callbacks of the event loop run in between; iterations are
counted, not milliseconds.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvloop
from hpack import Encoder

from steersman.net import time_slices
from steersman.net.connection import Core
from steersman.net.http1 import exchange as http1_exchange
from steersman.net.http1.connection import Http1Connection
from steersman.net.http2 import frames, hpack
from steersman.net.http2.blocks import BlockReader
from steersman.net.http2.connection import Http2Connection
from steersman.net.in_process import InProcessClient
from steersman.net.limits import Limits
from steersman.net.message import Headers, Request, Response
from tests.loop_turns import steps_of_turns
from tests.net.wire import Undated, Wire
from tests.noted import noted

READ = 256 << 10
"""Maximum bytes of one read."""
STEPS = 50
"""Steps of work in one time slice by the clock of these tests."""
F = frames.frame
HELLO = frames.PREFACE + frames.settings({})
FIELDS = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/")]
HEAD = Encoder().encode(FIELDS)
CANCEL = int(frames.ErrorCode.CANCEL).to_bytes(4)


class Clock:
    """A clock that advances whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += time_slices.SLICE / STEPS
        return self.now


async def ok(request: Request) -> Response:
    await request.body.read(1 << 30)
    return Response(200)


def core(handler: Any = ok, limits: Limits | None = None) -> Core:
    fields = [Undated(encode) for encode in (http1_exchange.field, hpack.field)]
    loop = asyncio.get_running_loop()
    made = Core(handler, limits or Limits(linger=0), loop, eager=True, h1_fields=fields[0], h2_fields=fields[1])
    made.input_queue.clock = Clock()
    return made


async def worked_off(connection: Http1Connection | Http2Connection) -> None:
    """Wait until no input is left over."""
    while connection.later:  # noqa: ASYNC110
        await asyncio.sleep(0)


def pipelined() -> bytes:
    return b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 8000


def little_chunks() -> bytes:
    return b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 40_000


def opened(number: int) -> bytes:
    return frames.headers(2 * number + 1, HEAD, frames.END_STREAM, 16384)


def little_data() -> bytes:
    return HELLO + frames.headers(1, HEAD, 0, 16384) + F(frames.DATA, 0, 1, b"a") * 25_000


FLOODS = {
    "pipelined requests": (Http1Connection, pipelined()),
    "chunks of a byte": (Http1Connection, little_chunks()),
    "requests": (Http2Connection, HELLO + b"".join(opened(number) for number in range(3000))),
    "requests that are reset": (
        Http2Connection,
        HELLO + b"".join(opened(n) + F(frames.RST_STREAM, 0, 2 * n + 1, CANCEL) for n in range(1500)),
    ),
    "data of a byte": (Http2Connection, little_data()),
    "pings": (Http2Connection, HELLO + F(frames.PING, 0, 0, bytes(8)) * 1900),
    "settings": (Http2Connection, HELLO + frames.settings({}) * 1900),
    "window updates": (Http2Connection, HELLO + opened(0) + frames.window_update(1, 1) * 19_000),
    "windows of the connection": (Http2Connection, HELLO + frames.window_update(0, 1) * 19_000),
    "large heads": (
        Http2Connection,
        HELLO
        + b"".join(
            frames.headers(2 * number + 1, HEAD + b"\x82" * 900, frames.END_STREAM, 16384) for number in range(250)
        ),
    ),
}


@pytest.mark.parametrize("name", FLOODS)
def test_one_read_is_worked_on_in_many_turns(name: Any) -> None:
    kind, data = FLOODS[name]
    assert len(data) <= READ

    async def run() -> int:
        shared, wire = core(), Wire()
        connection: Any = kind(shared)
        connection.connection_made(wire)
        connection.data_received(data)
        await worked_off(connection)
        connection.connection_lost(None)
        return shared.input_queue.count

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(run()) >= 2  # 150 steps at least, fifty a turn


async def test_a_request_of_another_connection_is_answered_in_between() -> None:
    shared, wire = core(), Wire()
    attacker = Http1Connection(shared)
    attacker.connection_made(Wire())
    attacker.data_received(pipelined())
    other = Http1Connection(shared)
    other.connection_made(wire)
    other.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert wire.written.startswith(b"HTTP/1.1 200 OK")
    assert attacker.later


async def test_connections_with_much_to_do_share_a_turn() -> None:
    shared = core()
    wires = [Wire() for _ in range(5)]
    for wire in wires:
        connection = Http1Connection(shared)
        connection.connection_made(wire)
        connection.data_received(pipelined())
    first = [len(wire.written) for wire in wires]
    assert all(later < first[0] / 5 for later in first[1:]), "only one has a whole slice to begin with"
    for _ in range(5):
        await asyncio.sleep(0)
    assert all(len(wire.written) > before for wire, before in zip(wires, first, strict=True))


PING = F(frames.PING, 0, 0, bytes(8))


@pytest.mark.parametrize(
    ("kind", "first", "more", "answer"),
    [
        (Http1Connection, b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK"),
        (Http2Connection, HELLO + opened(0), PING, F(frames.PING, frames.ACK, 0, bytes(8))),
    ],
    ids=["http/1.1", "http/2"],
)
async def test_what_comes_to_hundreds_of_connections_at_once_is_for_several_turns(
    kind: Any, first: Any, more: Any, answer: bytes
) -> None:
    shared = core()
    shared.postponed.clock = shared.input_queue.clock
    wires = [Wire() for _ in range(400)]
    connections = [kind(shared) for _ in wires]

    def answered() -> int:
        return sum(answer in bytes(wire.written) for wire in wires)

    for connection, wire in zip(connections, wires, strict=True):
        connection.connection_made(wire)
        connection.data_received(first + more)
    assert 20 < answered() < 300
    await asyncio.sleep(0)
    await worked_off(connections[0])
    connections[0].data_received(more)
    assert wires[0].written.count(answer) == 2, "what comes in the next turn is worked on again"
    for connection in connections:
        await worked_off(connection)
    assert answered() == 400
    for connection in connections:
        connection.connection_lost(None)


@pytest.mark.parametrize(
    ("kind", "request_"),
    [(Http1Connection, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), (Http2Connection, HELLO + opened(0))],
    ids=["http/1.1", "http/2"],
)
async def test_of_hundreds_of_connections_that_are_lost_at_once_some_are_let_go_of_in_each_turn(
    kind: Any, request_: Any
) -> None:
    cancelled = 0

    async def handler(_: Request) -> Response:
        nonlocal cancelled
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled += 1
            raise
        raise AssertionError("nobody goes on")

    shared = core(handler)
    connections = [kind(shared) for _ in range(400)]
    for connection in connections:
        connection.connection_made(Wire())
        connection.data_received(request_)
        await worked_off(connection)
    assert shared.counters.running == 400
    shared.losses.clock = shared.input_queue.clock
    for connection in connections:
        connection.connection_lost(None)
    assert not shared.connections
    seen = await steps_of_turns(lambda: cancelled, lambda: cancelled == 400)
    assert max(seen) < 300
    await asyncio.sleep(0)
    assert shared.counters.running == 0


KINDS = pytest.mark.parametrize(
    ("kind", "request_", "answer"),
    [
        (Http1Connection, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK"),
        (Http2Connection, HELLO + opened(0) + PING, F(frames.PING, frames.ACK, 0, bytes(8))),
    ],
    ids=["http/1.1", "http/2"],
)


def postponed(kind: Any, shared: Core, request_: bytes) -> Any:
    """Return a connection with a request that arrived in an iteration without time left."""
    shared.input_queue.input_deadline = 1e-9
    wire, connection = Wire(), kind(shared)
    connection.connection_made(wire)
    connection.data_received(request_)
    shared.input_queue.input_deadline = 0.0
    return connection, wire


@KINDS
async def test_what_is_put_off_is_taken_up_before_what_others_have_left_over(
    kind: Any, request_: Any, answer: Any
) -> None:
    shared = core()
    shared.postponed.clock = shared.input_queue.clock
    for _ in range(20):
        hog = Http1Connection(shared)
        hog.connection_made(Wire())
        hog.data_received(pipelined())
        assert hog.later
    connection, wire = postponed(kind, shared, request_)
    assert answer not in bytes(wire.written)
    for _ in range(3):
        await asyncio.sleep(0)
    assert answer in bytes(wire.written)
    connection.connection_lost(None)


@KINDS
async def test_what_is_put_off_is_answered_though_the_client_says_goodbye_at_once(
    kind: Any, request_: Any, answer: Any
) -> None:
    connection, wire = postponed(kind, core(), request_)
    assert not connection.eof_received()
    assert answer in bytes(wire.written)
    for _ in range(3):
        await asyncio.sleep(0)
    assert bytes(wire.written).count(answer) == 1
    connection.connection_lost(None)


async def test_what_is_put_off_of_a_client_that_has_gone_is_forgotten() -> None:
    connection, wire = postponed(Http1Connection, core(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    connection.connection_lost(None)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not wire.written


async def test_what_waits_is_read_on_and_everything_is_answered_in_the_end() -> None:
    shared, wire = core(), Wire()
    connection = Http1Connection(shared)
    connection.connection_made(wire)
    connection.data_received(pipelined())
    await worked_off(connection)
    assert wire.written.count(b"HTTP/1.1 200 OK") == 8000


async def test_pipelined_requests_wait_for_the_one_before_them() -> None:
    started = []

    async def handler(request: Request) -> Response:
        started.append(request.path)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody goes on")

    connection = Http1Connection(core(handler))
    connection.connection_made(Wire())
    connection.data_received(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number for number in range(8000)))
    await asyncio.sleep(0)
    assert started == ["/0"]
    assert connection._paused
    connection.connection_lost(None)


async def test_a_body_in_little_pieces_is_kept_in_few() -> None:
    held: list[Any] = []

    async def handler(request: Request) -> Response:
        held.append(request.body)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody goes on")

    shared = core(handler)
    connection = Http2Connection(shared)
    connection.connection_made(Wire())
    connection.data_received(little_data())
    await worked_off(connection)
    assert held[0].buffered == 25_000
    assert len(held[0]._pieces) < 5
    connection.connection_lost(None)


async def test_heads_over_the_limit_of_streams_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    head_of = noted(BlockReader.head, lambda reader, stream_id, *_: read.append(stream_id))
    monkeypatch.setattr(BlockReader, "head", head_of)
    connection = Http2Connection(core(limits=Limits(linger=0, max_streams=10)))
    connection.connection_made(Wire())
    large = Encoder().encode([*FIELDS, ("a", "b" * 1000)]) + b"\xbe" * 900
    head = b"".join(frames.headers(2 * n + 1, large, 0, 16384) for n in range(50))
    connection.data_received(HELLO + head)
    await worked_off(connection)
    assert len(read) == 10
    connection.connection_lost(None)


def test_a_repeated_field_has_all_of_its_values() -> None:
    headers = Headers.from_pairs([("a", str(number)) for number in range(1000)])
    assert headers["a"] == "0"
    assert headers.joined("a") == ", ".join(map(str, range(1000)))
    assert len(headers.get_all("a")) == 1000


async def test_requests_of_this_process_are_begun_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred requests from one iteration of the event loop are not all processed in the next."""
    now = 0.0
    starts = time_slices.RequestQueue.for_loop(asyncio.get_running_loop())
    monkeypatch.setattr(starts, "clock", lambda: now)

    async def handler(_: Request) -> Response:
        nonlocal now
        now += time_slices.SLICE / 10
        return Response(200, [], b"a")

    before = starts.count
    client = InProcessClient(handler)
    answers = await asyncio.gather(*(client.request("GET", "/") for _ in range(100)))
    assert [each.status for each in answers] == [200] * 100
    assert 10 <= starts.count - before <= 12
