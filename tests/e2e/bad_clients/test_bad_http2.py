"""HTTP/2 used against the server: rapid resets, header floods, settings and pings without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hpack import Encoder

from steersman.net.http2 import frames
from steersman.testing import ServerProcess
from tests.e2e.bad_clients.bad_client import BadClient, memory_grows_at_most, others_are_served


@pytest.fixture
def flood(server: ServerProcess, connect: Callable[..., BadClient]) -> Any:
    """Send `make(n)` for n = 0, 1, ... on a fresh connection until the server closes it; fail if it does not."""

    def run(make: Any, *, first: bytes = b"") -> None:
        client = connect(admin=False, alpn=("h2",))
        with others_are_served(server), memory_grows_at_most(server, 60):
            assert client.send(frames.PREFACE + frames.settings({}) + first)
            client.send_until_closed(lambda batch: b"".join(make(100 * batch + number) for number in range(100)))

    return run


def block(path: str = "/livez", *extra: tuple[str, str]) -> bytes:
    fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path), *extra]
    return Encoder().encode(fields)


@pytest.mark.slow
def test_rapid_resets_end_the_connection(flood: Any) -> None:
    head = block()
    cancel = int(frames.ErrorCode.CANCEL).to_bytes(4)

    def reset(number: int) -> bytes:
        stream = 2 * number + 1
        opened = frames.headers(stream, head, frames.END_STREAM, frames.DEFAULT_FRAME_SIZE)
        return opened + frames.frame(frames.RST_STREAM, 0, stream, cancel)

    flood(reset)


@pytest.mark.slow
def test_settings_without_end_end_the_connection(flood: Any) -> None:
    flood(lambda number: frames.settings({}))


@pytest.mark.slow
def test_pings_without_end_end_the_connection(flood: Any) -> None:
    flood(lambda number: frames.frame(frames.PING, 0, 0, b"01234567"))


@pytest.mark.slow
def test_empty_data_without_end_ends_the_connection(flood: Any) -> None:
    opened = frames.headers(1, block(), 0, frames.DEFAULT_FRAME_SIZE)
    flood(lambda number: frames.frame(frames.DATA, 0, 1, b""), first=opened)


@pytest.mark.slow
def test_continuations_without_end_end_the_connection(flood: Any) -> None:
    head = frames.frame(frames.HEADERS, frames.END_STREAM, 1, block())
    flood(lambda number: frames.frame(frames.CONTINUATION, 0, 1, b"\x00\x01a\x01b"), first=head)


def test_a_header_bomb_ends_the_stream_or_the_connection(
    server: ServerProcess, connect: Callable[..., BadClient]
) -> None:
    encoder = Encoder()
    fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/livez")]
    first = encoder.encode([*fields, ("a", "b" * 4000)])
    bomb = encoder.encode([*fields, *[("a", "b" * 4000)] * 4000])  # a byte each for four thousand
    assert len(bomb) < 10_000
    client = connect(admin=False, alpn=("h2",))
    with others_are_served(server), memory_grows_at_most(server, 60):
        client.send(frames.PREFACE + frames.settings({}))
        client.send(frames.headers(1, first, frames.END_STREAM, frames.DEFAULT_FRAME_SIZE))
        for number in range(1, 100):
            if not client.send(frames.headers(2 * number + 1, bomb, frames.END_STREAM, frames.DEFAULT_FRAME_SIZE)):
                break


BEGIN = frames.PREFACE + frames.settings({})
BROKEN = {
    "preface": b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    "garbage": frames.PREFACE + b"\xff" * 1000,
    "data on no stream": BEGIN + frames.frame(frames.DATA, 0, 0, b"a"),
    "an even stream": BEGIN + frames.frame(frames.HEADERS, 0x4, 2, block()),
    "no hpack": BEGIN + frames.frame(frames.HEADERS, 0x4, 1, b"\xff" * 20),
    "no window": BEGIN + frames.frame(frames.WINDOW_UPDATE, 0, 0, b"\x00" * 4),
    "no settings": BEGIN + frames.frame(frames.SETTINGS, 0, 0, b"abc"),
}


def test_broken_frames_end_the_connection(server: ServerProcess, connect: Callable[..., BadClient]) -> None:
    clients = {kind: connect(admin=False, alpn=("h2",)) for kind in BROKEN}
    with others_are_served(server):
        for kind, client in clients.items():
            client.send(BROKEN[kind])
        for client in clients.values():  # each lingers for a second
            client.rest()


def test_the_server_has_nothing_to_report_of_all_this(server: ServerProcess) -> None:
    assert "Traceback" not in server.errors.read_text()
