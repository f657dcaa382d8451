"""Connections to another network through a Konnectivity proxy: gRPC over a Unix socket.

Follows sigs.k8s.io/apiserver-network-proxy `konnectivity-client/pkg/client`, error texts included. Each connection has
a gRPC stream, whose packets name the target, carry bytes and close the connection.
"""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import Mapping
from time import monotonic
from typing import Final

from steersman.net import protobuf_fields as proto
from steersman.net.client import grpc
from steersman.net.client.dial import Dialed, DialError, errors_as_go, host_port
from steersman.net.client.grpc import CallError, Exchange
from steersman.net.client.http_connect import TunnelEvents
from steersman.net.client.unix_rpc import LARGEST_MESSAGE, UnixChannel
from steersman.net.upgrade import UpgradedConnection

METHOD: Final = "/ProxyService/Proxy"
CONNECT_TIMEOUT: Final = 30.0
"""Seconds allowed for reaching the proxy."""
DIAL_TIMEOUT: Final = 30.0
"""Seconds allowed to the proxy for reaching the target."""
CLOSE_TIMEOUT: Final = 10.0
"""Seconds allowed to the proxy for confirming the end of a connection."""

DIAL_REQUEST, DIAL_RESPONSE, CLOSE_REQUEST, CLOSE_RESPONSE, DATA, DIAL_CLOSE = range(6)
"""Types of packets (PacketType); the protobuf fields of their contents are in `_CONTENT`."""
_CONTENT: Final = {DIAL_REQUEST: 2, DIAL_RESPONSE: 3, DATA: 4, CLOSE_REQUEST: 5, CLOSE_RESPONSE: 6, DIAL_CLOSE: 7}

Fields = Mapping[int, list[proto.Value]]


def packet(kind: int, *fields: tuple[int, proto.Value | str]) -> bytes:
    """Return an encoded Packet of this type and content."""
    content = proto.encode(fields)
    return proto.encode([(1, kind)]) + proto.varint(_CONTENT[kind] << 3 | 2) + proto.varint(len(content)) + content


def read_packet(data: bytes) -> tuple[int, Fields]:
    """Return the type and the content of a Packet; the content of an unknown type is empty. Raises FieldsError."""
    fields = proto.decode(data)
    kind = proto.number_of(fields, 1)
    return kind, proto.decode(proto.bytes_of(fields, _CONTENT[kind])) if kind in _CONTENT else {}


class Konnectivity:
    """Dialer through a proxy at a Unix socket, with a new connection to the proxy for each call. Implements Dial."""

    def __init__(self, path: str, events: TunnelEvents) -> None:
        self._path = path
        self._events = events
        self._open: Final[set[asyncio.Task[None]]] = set()

    async def __call__(self, host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> UpgradedConnection:
        target, began = host_port(host, port), monotonic()
        self._events.started()
        tunnel = _Tunnel(self._path)
        try:
            await tunnel.connect()
        except BaseException as error:
            if isinstance(error, DialError):
                self._events.failed("connect")
            await tunnel.close()
            raise
        try:
            await tunnel.dial(target)
        except BaseException as error:
            if isinstance(error, DialError):
                self._events.failed("proxy")
            await tunnel.close()
            raise
        self._events.succeeded(monotonic() - began)
        dialed, far = await _pair()
        task = asyncio.get_running_loop().create_task(tunnel.carry(far))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        if tls is not None:
            with errors_as_go(f"tcp {target}", server_name or host):
                await dialed.begin_tls(tls, server_name or host)
        assert dialed.connection is not None
        return dialed.connection


class _Tunnel:
    """A stream to the proxy that carries one connection."""

    def __init__(self, path: str) -> None:
        self._channel = UnixChannel(path)
        self._stream: Exchange
        self._id = 0

    async def connect(self) -> None:
        """Wait for the proxy and begin the stream. Raises DialError."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                connection = await self._channel.connected()
        except TimeoutError:
            why = self._channel.failure
            raise DialError(
                f'context deadline exceeded: connection error: desc = "transport: error while dialing: {why}"'
            ) from None
        try:
            self._stream = Exchange(connection, grpc.head("localhost", METHOD), most=LARGEST_MESSAGE)
        except CallError:
            raise DialError("tunnel closed") from None

    async def dial(self, target: str) -> None:
        """Have the proxy connect to `target`. Raises DialError."""
        number = random.getrandbits(63)
        try:
            async with asyncio.timeout(DIAL_TIMEOUT):
                await self._stream.write(packet(DIAL_REQUEST, (1, "tcp"), (2, target), (3, number)))
                while True:
                    data = await self._stream.read()
                    if data is None:
                        raise DialError("tunnel closed")
                    kind, content = read_packet(data)
                    if kind == DIAL_CLOSE:
                        raise DialError("dial closed")
                    if kind != DIAL_RESPONSE:
                        continue
                    if proto.number_of(content, 3) != number:
                        raise DialError("tunnel closed")
                    if why := proto.text_of(content, 1):
                        raise DialError(why)
                    self._id = proto.number_of(content, 2)
                    return
        except TimeoutError:
            await self._last(packet(DIAL_CLOSE, (1, number)))
            raise DialError("dial timeout, backstop") from None
        except (CallError, proto.FieldsError):
            raise DialError("tunnel closed") from None

    async def carry(self, far: UpgradedConnection) -> None:
        """Copy bytes in both directions until either side has ended."""
        outward = asyncio.get_running_loop().create_task(self._outward(far))
        inward = asyncio.get_running_loop().create_task(self._inward(far))
        try:
            await asyncio.wait((outward, inward), return_when=asyncio.FIRST_COMPLETED)
            if not inward.done():  # this side has ended first
                await self._last(packet(CLOSE_REQUEST, (1, self._id)))
                await asyncio.wait((inward,), timeout=CLOSE_TIMEOUT)
        finally:
            for task in (outward, inward):
                task.cancel()
            await asyncio.gather(outward, inward, return_exceptions=True)
            far.close()
            await self.close()

    async def _outward(self, far: UpgradedConnection) -> None:
        try:
            while data := await far.read():
                await self._stream.write(packet(DATA, (1, self._id), (3, data)))
        except CallError:
            return  # the proxy has gone

    async def _inward(self, far: UpgradedConnection) -> None:
        try:
            while (data := await self._stream.read()) is not None:
                kind, content = read_packet(data)
                if kind == CLOSE_RESPONSE:
                    return
                if kind == DATA and proto.number_of(content, 1) == self._id:
                    await far.write(proto.bytes_of(content, 3))
        except (CallError, proto.FieldsError, ConnectionResetError):
            return  # one of the two sides has gone

    async def _last(self, data: bytes) -> None:
        """Try to send a last packet; failures are ignored."""
        try:
            async with asyncio.timeout(1):
                await self._stream.write(data)
        except (TimeoutError, CallError):
            return

    async def close(self) -> None:
        await self._channel.close()


async def _pair() -> tuple[Dialed, UpgradedConnection]:
    """Return the two ends of a socket pair: TLS needs a real socket."""
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    _, dialed = await loop.create_connection(lambda: Dialed(loop), sock=near)
    _, other = await loop.create_connection(lambda: Dialed(loop), sock=far)
    assert other.connection is not None
    return dialed, other.connection
