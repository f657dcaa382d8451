"""WebSockets (RFC 6455) as messages both ways, on connections taken over from HTTP/1.1.

The `websockets` package encodes and decodes frames.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from steersman.net.message import Upgraded
from steersman.net.websocket.streams import Incoming, new_protocol

if TYPE_CHECKING:
    from websockets.protocol import Protocol

MAX_MESSAGE_BYTES: Final = 32 << 20
"""Limit of a message, as in golang.org/x/net/websocket, which kube-apiserver uses."""
_CONTINUATION: Final = 0
_TEXT: Final = 1
_BINARY: Final = 2


class MessageConnection:
    """The server's side of a WebSocket. Created by `open_messages`."""

    def __init__(self, connection: Upgraded, protocol: Protocol) -> None:
        self._connection = connection
        self._protocol = protocol
        self._incoming = Incoming(protocol)
        self._frames: deque[tuple[bytes, bool]] = deque()
        self._over = False

    async def receive(self) -> bytes | None:
        """Return the next message, text as its bytes; None when the client has closed or gone."""
        message = bytearray()  # a message may arrive in parts of one byte
        while (frame := await self.receive_frame()) is not None:
            if frame[1] and not message:
                return frame[0]  # most messages have one part; a large one is not copied
            message += frame[0]
            if frame[1]:
                return bytes(message)
        return None

    async def receive_frame(self) -> tuple[bytes, bool] | None:
        """Return the next part of a message, and True if it is the last; None when the client has closed or gone."""
        while not self._frames:
            if self._over:
                return None
            if not await self._incoming.receive():
                data = await self._connection.read()
                if not data:
                    self._over = True
                    return None
                self._incoming.add(data)
                continue
            for event in self._protocol.events_received():
                opcode = getattr(event, "opcode", None)
                if opcode in (_CONTINUATION, _TEXT, _BINARY):
                    self._frames.append((bytes(event.data), event.fin))  # type: ignore[union-attr]
            self._over = self._protocol.close_expected()
            try:
                await self._flush()
            except ConnectionResetError:
                self._over = True
        return self._frames.popleft()

    async def send(self, data: bytes | str) -> None:
        """Send a message, waiting while the client is slow. Raises ConnectionResetError when it is gone."""
        if isinstance(data, str):
            await self.send_text(data.encode())
            return
        self._check_open()
        self._protocol.send_binary(data)
        await self._flush()

    async def send_text(self, data: bytes) -> None:
        """Send UTF-8 as a text message, waiting while the client is slow. Raises ConnectionResetError when it is
        gone.
        """
        self._check_open()
        self._protocol.send_text(data)
        await self._flush()

    def _check_open(self) -> None:
        if self._over or self._protocol.close_expected():
            raise ConnectionResetError("the WebSocket is closed")

    async def close(self) -> None:
        """Send a close frame (1000) if still possible, and close the connection."""
        try:
            if not self._over and not self._protocol.close_expected():
                self._protocol.send_close(1000)
                await self._flush()
        except ConnectionResetError:
            pass  # the client had gone before
        finally:
            self._over = True
            self._connection.close()
            self._incoming.end()

    async def _flush(self) -> None:
        if data := b"".join(self._protocol.data_to_send()):
            await self._connection.write(data)


async def open_messages(connection: Upgraded, most: int = MAX_MESSAGE_BYTES) -> MessageConnection:
    """Return a connection that transmits messages of up to `most` bytes.

    The handshake (`net.websocket.streams.handshake`) must be complete.
    """
    return MessageConnection(connection, await new_protocol(most))
