"""gRPC calls over a Unix socket: to a server of grpcio, and to peers that break off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from steersman.net.client.grpc import CallError, Code, Exchange, Messages, encode_timeout, head
from steersman.net.client.unix_rpc import LARGEST_MESSAGE, UnixChannel
from steersman.net.http2 import frames, hpack

METHOD = "/test.Echo/Say"
Answer = Callable[[bytes, Any], Awaitable[bytes]]


async def echo(message: bytes, _: Any) -> bytes:
    return message


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("u") / "s")


@asynccontextmanager
async def serving(path: str, answer: Answer = echo, **options: int) -> AsyncIterator[None]:
    """Run a grpcio server with `answer` as its only method."""
    server = grpc.aio.server(options=[(f"grpc.{name}", value) for name, value in options.items()])
    handlers = {"Say": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    server.add_insecure_port(f"unix-abstract:{path[1:]}" if path.startswith("@") else f"unix:{path}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


@asynccontextmanager
async def channel_to(path: str) -> AsyncIterator[tuple[UnixChannel, list[tuple[str, str]]]]:
    """Yield a channel, and the list of (method, code) of each completed call."""
    ended: list[tuple[str, str]] = []
    channel = UnixChannel(path, lambda method, code, _: ended.append((method, code)))
    try:
        yield channel, ended
    finally:
        await channel.close()


async def test_calls_go_over_one_connection(path: str) -> None:
    peers = set()

    async def answer(message: bytes, context: Any) -> bytes:
        peers.add(context.peer())
        assert dict(context.invocation_metadata()).keys() <= {"user-agent"}
        return message * 2

    async with serving(path, answer), channel_to(path) as (channel, ended):
        results = await asyncio.gather(*(channel.call(METHOD, b"%d" % n, timeout=10) for n in range(50)))
        assert results == [b"%d%d" % (n, n) for n in range(50)]
        assert await channel.call(METHOD, b"", timeout=10) == b""
        assert ended == [(METHOD, "OK")] * 51
    assert len(peers) == 1


async def test_a_name_in_the_abstract_namespace_is_a_socket() -> None:
    path = f"@steersman-test-{os.getpid()}"
    async with serving(path), channel_to(path) as (channel, _):
        assert await channel.call(METHOD, b"a", timeout=10) == b"a"


async def test_the_status_of_a_call_is_told(path: str) -> None:
    async def answer(_: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no key: 100% gone \u2013 sorry")
        return b""

    async with serving(path, answer), channel_to(path) as (channel, ended):
        with pytest.raises(CallError) as caught:
            await channel.call(METHOD, b"", timeout=10)
        with pytest.raises(CallError) as unknown:
            await channel.call("/test.Echo/Shout", b"", timeout=10)
    assert str(caught.value) == "rpc error: code = FailedPrecondition desc = no key: 100% gone \u2013 sorry"
    assert unknown.value.code is Code.UNIMPLEMENTED
    assert ended == [(METHOD, "FailedPrecondition"), ("/test.Echo/Shout", "Unimplemented")]


async def test_the_server_knows_the_deadline(path: str) -> None:
    left = []

    async def answer(message: bytes, context: Any) -> bytes:
        left.append(context.time_remaining())
        await asyncio.sleep(60 if message else 0)
        return b""

    async with serving(path, answer), channel_to(path) as (channel, ended):
        await channel.call(METHOD, b"", timeout=30)
        with pytest.raises(CallError) as caught:
            await channel.call(METHOD, b"long", timeout=0.05)
        assert await channel.call(METHOD, b"", timeout=20) == b""
    assert str(caught.value) == "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    assert [round(each, -1) for each in left if each > 1] == [30, 20]
    assert [code for _, code in ended] == ["OK", "DeadlineExceeded", "OK"]


async def test_a_call_that_is_given_up_ends_at_the_server(path: str) -> None:
    began, given_up = asyncio.Event(), asyncio.Event()

    async def answer(message: bytes, _: Any) -> bytes:
        if not message:
            return b"on"
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            given_up.set()
            raise
        return b""

    async with serving(path, answer), channel_to(path) as (channel, ended):
        calling = asyncio.create_task(channel.call(METHOD, b"long", timeout=60))
        await began.wait()
        before = await channel.connected()
        calling.cancel()
        async with asyncio.timeout(10):
            await given_up.wait()
        assert await channel.call(METHOD, b"", timeout=10) == b"on"
        assert await channel.connected() is before
    assert [code for _, code in ended] == ["Canceled", "OK"]


async def test_a_server_that_is_not_there_is_waited_for(path: str) -> None:
    async with channel_to(path) as (channel, _):
        with pytest.raises(CallError) as caught:
            await channel.call(METHOD, b"", timeout=0.3)
        assert str(caught.value) == (
            'rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = "transport: '
            f'Error while dialing: dial unix {path}: connect: no such file or directory"'
        )
        calling = asyncio.create_task(channel.call(METHOD, b"a", timeout=10))
        await asyncio.sleep(0)
        async with serving(path):
            assert await calling == b"a"


async def test_a_connection_that_is_lost_is_made_again(path: str) -> None:
    began = asyncio.Event()

    async def answer(message: bytes, _: Any) -> bytes:
        began.set()
        await asyncio.sleep(60)
        return message

    async with channel_to(path) as (channel, ended):
        async with serving(path, answer):
            calling = asyncio.create_task(channel.call(METHOD, b"a", timeout=60))
            await began.wait()
        with pytest.raises(CallError) as caught:
            await calling
        assert caught.value.code in (Code.UNAVAILABLE, Code.CANCELED)  # grpcio resets the stream, or just hangs up
        async with serving(path):
            assert await channel.call(METHOD, b"b", timeout=10) == b"b"
    assert ended[-1] == (METHOD, "OK")


async def test_an_answer_that_is_too_large_is_refused(path: str) -> None:
    async def answer(message: bytes, _: Any) -> bytes:
        return bytes(int(message))

    async with serving(path, answer, max_send_message_length=-1), channel_to(path) as (channel, _):
        assert len(await channel.call(METHOD, b"%d" % LARGEST_MESSAGE, timeout=30)) == LARGEST_MESSAGE
        with pytest.raises(CallError) as caught:
            await channel.call(METHOD, b"%d" % (LARGEST_MESSAGE + 1), timeout=30)
        assert await channel.call(METHOD, b"3", timeout=10) == bytes(3)
    assert str(caught.value) == (
        "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (4194305 vs. 4194304)"
    )


async def test_calls_wait_for_room_on_a_full_connection(path: str) -> None:
    under_way = most = 0

    async def answer(message: bytes, _: Any) -> bytes:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return message

    async with serving(path, answer, max_concurrent_streams=2), channel_to(path) as (channel, _):
        results = await asyncio.gather(*(channel.call(METHOD, b"%d" % n, timeout=10) for n in range(20)))
    assert results == [b"%d" % n for n in range(20)]
    assert most <= 2


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def scripted(path: str, script: Script) -> AsyncIterator[None]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(reader, writer)
        finally:
            writer.close()

    async with await asyncio.start_unix_server(serve, path):
        yield


async def until_request(reader: asyncio.StreamReader) -> None:
    """Read until the message of the first call has arrived."""
    await reader.readexactly(len(frames.PREFACE))
    kind = -1
    while kind != frames.DATA:
        first, _, _ = frames.unpack_head(await reader.readexactly(frames.HEADER_LENGTH))
        kind = first & 0xFF
        await reader.readexactly(first >> 8)


def _head(stream: int, fields: dict[str, str], *, ends: bool = False) -> bytes:
    block = b"".join(hpack.field(name, value) for name, value in fields.items())
    return frames.headers(stream, block, frames.END_STREAM if ends else 0, 16384)


def _data(payload: bytes) -> bytes:
    return frames.frame(frames.DATA, 0, 1, payload)


def _answer(payload: bytes, status: str) -> bytes:
    return _head(1, OK) + _data(payload) + _head(1, {"grpc-status": status}, ends=True)


OK = {":status": "200", "content-type": "application/grpc"}
INTERNAL = "code = Internal desc ="
NO_MESSAGE = "cardinality violation: received no response message from non-server-streaming RPC"
_STATUS_13 = hpack.field("grpc-status", "13")
ENDS: dict[str, tuple[bytes, str]] = {
    "hangs up": (b"", "code = Unavailable desc = error reading from server: EOF"),
    "goes away": (
        frames.goaway(1, 0, "bye"),
        "code = Unavailable desc = error reading from server: EOF",
    ),
    "cancels": (
        frames.rst_stream(1, frames.ErrorCode.CANCEL),
        "code = Canceled desc = stream terminated by RST_STREAM with error code: CANCEL",
    ),
    "calms": (
        frames.rst_stream(1, frames.ErrorCode.ENHANCE_YOUR_CALM),
        "code = ResourceExhausted desc = stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM",
    ),
    "fails": (
        frames.rst_stream(1, 77),
        "code = Internal desc = stream terminated by RST_STREAM with error code: unknown error code 0x4d",
    ),
    "breaks the protocol": (
        frames.rst_stream(1, frames.ErrorCode.PROTOCOL_ERROR),
        "code = Internal desc = stream terminated by RST_STREAM with error code: PROTOCOL_ERROR",
    ),
    "says nothing": (_head(1, OK, ends=True), "code = Unknown desc = "),
    "says no type": (
        _head(1, {":status": "200"}, ends=True),
        "code = Unknown desc = unexpected HTTP status code received from server: 200 (OK); "
        "malformed header: missing HTTP content-type",
    ),
    "is no server of gRPC": (
        _head(1, {":status": "404", "content-type": "text/html"}) + _data(b"<html>"),
        "code = Unimplemented desc = unexpected HTTP status code received from server: 404 (Not Found); "
        'transport: received unexpected content-type "text/html"',
    ),
    "fails without a message": (_head(1, OK) + _head(1, {"grpc-status": "0"}, ends=True), f"{INTERNAL} {NO_MESSAGE}"),
    "fails with an OK": (
        _head(1, {":status": "500", "content-type": "application/grpc", "grpc-status": "0"}, ends=True),
        f"{INTERNAL} {NO_MESSAGE}",
    ),
    "ends without trailers": (
        _head(1, OK) + _data(b"\0\0\0\0\x01x") + frames.frame(frames.DATA, frames.END_STREAM, 1, b""),
        f"{INTERNAL} server closed the stream without sending trailers",
    ),
    "ends within a message": (_answer(b"\0\0\0\0\x05x", "0"), f"{INTERNAL} unexpected EOF"),
    "sends two messages": (
        _answer(b"\0\0\0\0\x01x\0\0\0\0\x01y", "0"),
        f"{INTERNAL} cardinality violation: expected <EOF> for non server-streaming RPCs, but received another message",
    ),
    "begins a message of 4 GiB": (
        _head(1, OK) + _data(b"\0\xff\xff\xff\xffx"),
        "code = ResourceExhausted desc = grpc: received message larger than max (4294967295 vs. 4194304)",
    ),
    "compresses": (
        _head(1, OK) + _data(b"\x01\0\0\0\x01x"),
        f"{INTERNAL} grpc: compressed flag set with identity or empty encoding",
    ),
    "compresses as it says": (
        _head(1, {**OK, "grpc-encoding": "gzip"}) + _data(b"\x01\0\0\0\x01x"),
        f'{INTERNAL} grpc: Decompressor is not installed for grpc-encoding "gzip"',
    ),
    "sends another form": (
        _head(1, OK) + _data(b"\x02\0\0\0\x01x"),
        f"{INTERNAL} grpc: received unexpected payload format 2",
    ),
    "says no number": (
        _answer(b"", "abc"),
        'code = Unknown desc = transport: malformed grpc-status: strconv.ParseInt: parsing "abc": invalid syntax',
    ),
    "says too large a number": (
        _answer(b"", "2147483648"),
        "code = Unknown desc = transport: malformed grpc-status: strconv.ParseInt: parsing "
        '"2147483648": value out of range',
    ),
    "says a number of 5,000 digits": (
        _answer(b"", "1" * 5000),
        "code = Unknown desc = transport: malformed grpc-status: strconv.ParseInt: parsing "
        f'"{"1" * 1024}": value out of range',
    ),
    "says bytes": (
        _head(1, OK) + frames.headers(1, _STATUS_13 + b"\0\x0cgrpc-message\x05%ff\xfe\x80", frames.END_STREAM, 16384),
        f"{INTERNAL} \ufffd\ufffd\ufffd",
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_ends_of_a_call_without_a_status_are_told_as_go_tells_them(path: str, end: str) -> None:
    said, told = ENDS[end]

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frames.settings({}))
        await until_request(reader)
        writer.write(said)

    async with scripted(path, script), channel_to(path) as (channel, _):
        with pytest.raises(CallError) as caught:
            await channel.call(METHOD, b"a", timeout=10)
    assert str(caught.value) == f"rpc error: {told}"


async def test_what_the_server_has_not_begun_is_sent_again(path: str) -> None:
    refused = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frames.settings({}))
        await until_request(reader)
        refused.set()
        writer.write(frames.goaway(0, 0))

    async with channel_to(path) as (channel, _):
        async with scripted(path, script):
            calling = asyncio.create_task(channel.call(METHOD, b"a", timeout=10))
            await refused.wait()
        async with serving(path):
            assert await calling == b"a"


async def test_who_hangs_up_before_its_settings_is_no_server(path: str) -> None:
    tried = 0

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tried
        tried += 1

    async with scripted(path, script), channel_to(path) as (channel, ended):
        with pytest.raises(CallError) as caught:
            await channel.call(METHOD, b"", timeout=0.3)
    assert str(caught.value) == (
        "rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = "
        '"error reading server preface: EOF"'
    )
    assert 1 <= tried <= 2  # each time is a while after the last
    assert ended == [(METHOD, "DeadlineExceeded")]


async def test_a_channel_that_is_closed_ends_what_is_under_way(path: str) -> None:
    began = asyncio.Event()

    async def answer(message: bytes, _: Any) -> bytes:
        began.set()
        await asyncio.sleep(60)
        return message

    async with serving(path, answer):
        async with channel_to(path) as (channel, _):
            calling = asyncio.create_task(channel.call(METHOD, b"a", timeout=60))
            await began.wait()
        with pytest.raises(CallError):
            await calling


async def test_who_writes_waits_for_the_window_and_hears_of_the_end(path: str) -> None:
    ends = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frames.settings({}))
        await ends.wait()

    async with scripted(path, script), channel_to(path) as (channel, _):
        exchange = Exchange(await channel.connected(), head("localhost", METHOD))
        await exchange.write(bytes(60_000))
        writing = asyncio.create_task(exchange.write(bytes(60_000)))
        reading = asyncio.create_task(exchange.read())
        await asyncio.sleep(0.01)
        assert not writing.done()
        ends.set()
        for each in (writing, reading):
            with pytest.raises(CallError):
                await each


async def test_messages_of_both_sides_keep_each_others_pace(path: str) -> None:
    async def answer(requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
        async for each in requests:
            yield each

    server = grpc.aio.server()
    handlers = {"Say": grpc.stream_stream_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    async with channel_to(path) as (channel, _):
        exchange = Exchange(await channel.connected(), head("localhost", METHOD))
        sending = asyncio.create_task(_send(exchange, 200))
        for _ in range(200):
            message = await exchange.read()
            assert message is not None
            assert len(message) == 1 << 16
        await sending
        await exchange.close()
    await server.stop(None)


async def test_many_small_messages_leave_the_loop_to_others(path: str) -> None:
    turns = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frames.settings({}))
        await until_request(reader)
        writer.write(_head(1, OK) + _data(b"\0\0\0\0\0" * 3200) * 60)
        await reader.read()

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with scripted(path, script), channel_to(path) as (channel, _):
        exchange = Exchange(await channel.connected(), head("localhost", METHOD), most=LARGEST_MESSAGE)
        await exchange.write(b"a")
        assert await exchange.read() == b""
        await asyncio.sleep(0.05)  # until most have come
        other = asyncio.create_task(others())
        for _ in range(190_000):
            assert await exchange.read() == b""
        other.cancel()
    assert turns > 3


async def _send(exchange: Exchange, count: int) -> None:
    for _ in range(count):
        await exchange.write(bytes(1 << 16))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0n"),
        (-1, "0n"),
        (0.05, "50000000n"),
        (0.1, "100000u"),
        (3, "3000000u"),
        (100, "100000m"),
        (1e6, "1000000S"),
    ],
)
def test_timeouts_are_told_in_the_finest_unit_that_holds_them(seconds: float, text: str) -> None:
    assert encode_timeout(seconds) == text


def test_messages_are_found_however_they_are_cut() -> None:
    whole = b"".join(b"\0" + len(each).to_bytes(4) + each for each in (b"", b"a" * 300, b"b"))
    for size in (1, 4, 7, len(whole)):
        messages, found = Messages(300), []
        for at in range(0, len(whole), size):
            messages.feed(whole[at : at + size])
            while (message := messages.next()) is not None:
                found.append(message)
        assert found == [b"", b"a" * 300, b"b"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\1\0\0\0\1a", "code = Internal desc = grpc: compressed flag set with identity or empty encoding"),
        (b"\0\0\0\1\x2d", r"code = ResourceExhausted desc = grpc: received message larger than max \(301 vs. 300\)"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, why: str) -> None:
    messages = Messages(300)
    messages.feed(data)
    with pytest.raises(CallError, match=why):
        messages.next()
