"""Connections through a gRPC proxy on a Unix socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.net.client import konnectivity
from steersman.net.client.dial import DialError
from steersman.net.client.konnectivity import DATA, Konnectivity, packet, read_packet
from steersman.net.client.transport import Address, Transport, bounded
from tests.net.client.konnectivity_proxy import KonnectivityProxy
from tests.net.client.origin import Origin
from tests.net.client.tunnel_events import Events

Contexts = Callable[..., ssl.SSLContext]


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("k") / "s"


async def ended(dialer: Konnectivity) -> None:
    """Wait until the dialer has no connections left."""
    async with asyncio.timeout(10):
        while dialer._open:
            await asyncio.wait(dialer._open)


def test_packets_are_as_the_protocol_has_them() -> None:
    assert packet(DATA, (1, 7), (3, b"ab")) == b"\x08\x04\x22\x06\x08\x07\x1a\x02ab"
    assert read_packet(packet(DATA, (1, 7), (3, b"ab"))) == (DATA, {1: [7], 3: [b"ab"]})
    assert packet(konnectivity.DIAL_REQUEST, (1, "tcp")) == b"\x12\x05\x0a\x03tcp"  # a type of zero is left out
    assert read_packet(b"\x08\x06\x42\x00") == (6, {})  # DRAIN


async def test_tls_goes_through_and_connections_are_kept(origin: Origin, client_context: Contexts, path: Path) -> None:
    proxy, events, context = KonnectivityProxy(origin.port), Events(), client_context()
    async with proxy.serving_at(path):
        dialer = Konnectivity(str(path), events)
        transport = Transport(lambda _: context, "localhost", leave=dialer)
        for _ in range(3):
            answer = await transport.send(Address("no.such.host", 8443), "GET", "/", [("Host", "localhost")])
            assert await bounded(answer, 100, 20) == b"ok"
        transport.close()
        await ended(dialer)  # either side may be the first to say so
    assert proxy.asked == [("tcp", "no.such.host:8443")]
    assert events.told == ["started", "made"]
    assert origin.connections == 1


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ({"error": "dial tcp 192.0.2.1:443: i/o timeout"}, "dial tcp 192.0.2.1:443: i/o timeout"),
        ({"closes": True}, "dial closed"),
        ({"ends": True}, "tunnel closed"),
    ],
)
async def test_a_proxy_that_does_not_lead_on_is_told_of(behaviour: dict[str, object], told: str, path: Path) -> None:
    events = Events()
    async with KonnectivityProxy(0, **behaviour).serving_at(path):  # type: ignore[arg-type]
        with pytest.raises(DialError) as caught:
            await Konnectivity(str(path), events)("192.0.2.1", 443, None, "")
    assert str(caught.value) == told
    assert events.told == ["started", "failed at proxy"]


async def test_a_proxy_that_is_not_there_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(konnectivity, "CONNECT_TIMEOUT", 0.1)
    events = Events()
    with pytest.raises(DialError) as caught:
        await Konnectivity(str(path), events)("192.0.2.1", 443, None, "")
    assert str(caught.value) == (
        'context deadline exceeded: connection error: desc = "transport: error while dialing: '
        f'dial unix {path}: connect: no such file or directory"'
    )
    assert events.told == ["started", "failed at connect"]


async def test_much_goes_both_ways_at_the_pace_of_the_other_side(path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    events, size = Events(), 8 << 20
    proxy = KonnectivityProxy(server.sockets[0].getsockname()[1])
    async with proxy.serving_at(path):
        dialer = Konnectivity(str(path), events)
        connection = await dialer("192.0.2.1", 443, None, "")

        async def send() -> None:
            for _ in range(size >> 16):
                await connection.write(bytes(1 << 16))

        sending = asyncio.ensure_future(send())
        received = 0
        while received < size:
            received += len(await connection.read())
        await sending
        connection.close()
        async with asyncio.timeout(10):
            await proxy.closed.wait()
        await ended(dialer)
    server.close()
    assert received == size
