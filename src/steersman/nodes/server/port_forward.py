"""The endpoint `POST /portForward/NAMESPACE/POD`: connections to ports of a pod, over SPDY or a WebSocket.

Follows k8s.io/cri-streaming `portforward`: SPDY has a data and an error stream for each connection, a WebSocket
(v4.channel.k8s.io) two channels for each port.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

from steersman.api.core.v1 import Pod
from steersman.net.ascii import is_digits
from steersman.net.client.dial import DialError
from steersman.net.message import Request, Response, Upgraded
from steersman.net.spdy import Session, SpdyError, Stream
from steersman.net.websocket.messages import MessageConnection, open_messages
from steersman.net.websocket.streams import handshake, is_websocket_request, requested_protocols
from steersman.nodes.server.kubelet import Kubelet, Query, is_running, text
from steersman.nodes.server.streams import MOST_MESSAGE, negotiated, upgraded

logger = logging.getLogger(__name__)

_PROTOCOLS: Final = ("portforward.k8s.io",)
_WEBSOCKET_PROTOCOL: Final = "v4.channel.k8s.io"
_MOST_CONNECTIONS: Final = 256
"""Connections at once in one session."""
_MOST_PORTS: Final = 127

Write = Callable[[bytes], Awaitable[None]]


def forward_ports(kubelet: Kubelet, pod: Pod, request: Request, query: Query) -> Response:
    """Return the response that upgrades the connection, or an error for a pod that does not run and for a wrong
    request.
    """
    if not any(is_running(pod, each.name) for each in pod.spec.containers or ()):
        return text(500, f'pod not found ("{pod.metadata.name}_{pod.metadata.namespace}")')
    if is_websocket_request(request.headers):
        return _websocket(kubelet, pod, request, query)
    chosen = negotiated(request, _PROTOCOLS)
    if isinstance(chosen, Response):
        return chosen
    return upgraded(chosen, partial(_over_spdy, kubelet, pod))


def _failure(pod: Pod, port: int, error: Exception) -> bytes:
    metadata = pod.metadata
    return f"error forwarding port {port} to pod {metadata.name}, uid {metadata.uid}: {error}".encode()


async def _join(kubelet: Kubelet, pod: Pod, port: int, *, incoming: AsyncIterator[bytes], write: Write) -> None:
    """Forward bytes in both directions between a client and a port, until the port has closed.

    Raises DialError, ConnectionResetError, and what the client's side raises.
    """
    connection = await kubelet.connect(pod, port)

    async def there() -> None:
        async for piece in incoming:
            await connection.write(piece)

    going = asyncio.create_task(there())
    try:
        while piece := await connection.read():
            await write(piece)
    finally:
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
        connection.close()


# SPDY


async def _over_spdy(kubelet: Kubelet, pod: Pod, connection: Upgraded) -> None:
    waiting: dict[str, Stream] = {}
    tasks: set[asyncio.Task[None]] = set()

    async def accept(stream: Stream) -> bool:
        kind, port = stream.fields.get("streamtype", ""), stream.fields.get("port", "")
        if kind not in ("data", "error") or not is_digits(port) or not 0 < int(port[:6]) < 65536:
            return False
        number = stream.fields.get("requestid") or str(stream.number - (2 if kind == "data" else 0))
        other = waiting.pop(number, None)
        if other is None:
            if len(waiting) + len(tasks) >= _MOST_CONNECTIONS:
                return False
            waiting[number] = stream
            return True
        if other.fields.get("streamtype") == kind:
            return False
        data, error = (stream, other) if kind == "data" else (other, stream)
        task = asyncio.create_task(_one(kubelet, pod, int(port), data, error))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return True

    session = Session(connection, server=True, accept=accept)
    try:
        await session.run()
    except SpdyError as error:
        logger.debug("port forwarding to %s: %s", pod.metadata.name, error)
    finally:
        session.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pieces(stream: Stream) -> AsyncIterator[bytes]:
    while piece := await stream.read():
        yield piece


async def _one(kubelet: Kubelet, pod: Pod, port: int, data: Stream, error: Stream) -> None:
    try:
        try:
            await _join(kubelet, pod, port, incoming=_pieces(data), write=data.write)
        except (DialError, ConnectionResetError) as failure:
            await error.write(_failure(pod, port, failure))
            await error.end()
            await data.reset()
            return
        data.ignore()
        await data.end()
        await error.end()
    except SpdyError as failure:
        logger.debug("port forwarding to %s: %s", pod.metadata.name, failure)


# WebSockets


def _websocket(kubelet: Kubelet, pod: Pod, request: Request, query: Query) -> Response:
    ports: list[int] = []
    for each in (part for value in query.get("port", ()) for part in value.split(",")):
        if not is_digits(each) or not 0 < int(each[:6]) < 65536 or len(ports) >= _MOST_PORTS:
            return text(400, 'query parameter "port" is not a port')
        ports.append(int(each))
    if not ports:
        return text(400, 'query parameter "port" is required')
    offered = requested_protocols(request.headers)
    if offered and _WEBSOCKET_PROTOCOL not in offered:
        return text(403, "")
    response = handshake(request.headers, protocol=_WEBSOCKET_PROTOCOL if offered else "")
    if response.status == 101:
        response.upgrade = partial(_over_websocket, kubelet, pod, ports)
    return response


async def _over_websocket(kubelet: Kubelet, pod: Pod, ports: list[int], connection: Upgraded) -> None:
    client = await open_messages(connection, MOST_MESSAGE)
    incoming = [_Incoming() for _ in ports]
    tasks = [
        asyncio.create_task(_channel(kubelet, pod, port, client, number, incoming[number]))
        for number, port in enumerate(ports)
    ]
    try:
        while (message := await client.receive()) is not None:
            if message and not message[0] % 2 and message[0] // 2 < len(ports):
                await incoming[message[0] // 2].give(message[1:])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()


class _Incoming:
    """Messages to one port. At most one is buffered: a message that the port has not taken blocks the WebSocket.

    Messages to a port whose connection has ended are dropped.
    """

    def __init__(self) -> None:
        self._message = b""
        self._has_come = asyncio.Event()
        self._is_taken = asyncio.Event()
        self._is_over = False

    async def give(self, message: bytes) -> None:
        """Wait until the port has taken the message."""
        if not self._is_over:
            self._message = message
            self._is_taken.clear()
            self._has_come.set()
            await self._is_taken.wait()

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield messages as they arrive. A message counts as taken when the next one is requested."""
        while True:
            await self._has_come.wait()
            self._has_come.clear()
            message, self._message = self._message, b""
            yield message
            self._is_taken.set()

    def end(self) -> None:
        """Drop messages from now on."""
        self._is_over, self._message = True, b""
        self._is_taken.set()


async def _channel(
    kubelet: Kubelet, pod: Pod, port: int, client: MessageConnection, number: int, incoming: _Incoming
) -> None:
    """Forward one port: data on channel 2N, errors on channel 2N + 1; each channel begins with the port."""

    async def write(data: bytes) -> None:
        await client.send(bytes((2 * number,)) + data)

    try:
        for channel in (2 * number, 2 * number + 1):
            await client.send(bytes((channel,)) + struct.pack("<H", port))
        try:
            await _join(kubelet, pod, port, incoming=incoming.messages(), write=write)
        except DialError as failure:
            await client.send(bytes((2 * number + 1,)) + _failure(pod, port, failure))
    except ConnectionResetError as failure:
        logger.debug("port forwarding to %s: %s", pod.metadata.name, failure)
    finally:
        incoming.end()
