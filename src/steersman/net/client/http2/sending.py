"""The sending half of a client's HTTP/2 connection: requests and their bodies, within the flow control windows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from steersman.net.client.answer import BadAnswer
from steersman.net.client.http1 import MAX_HEAD_BYTES
from steersman.net.client.http2.answer import ClientStream
from steersman.net.http2 import frames
from steersman.net.http2.flow_control import ReceiveWindow
from steersman.net.http2.receiving import Receiving
from steersman.net.message import BodyAborted
from steersman.net.receiving_protocol import ReceivingProtocol

CONNECTION_WINDOW: Final = 1 << 30
"""Receive window of the connection: so large that an unread body does not hold up other streams."""


class Sending(ReceivingProtocol, Receiving[ClientStream]):
    """Sender of requests and bodies on a client's connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        ReceivingProtocol.__init__(self)
        Receiving.__init__(self, loop.time, ReceiveWindow(CONNECTION_WINDOW, CONNECTION_WINDOW // 2), MAX_HEAD_BYTES)
        self._loop = loop
        self._transport: asyncio.Transport
        self.next_id = 1
        """Id of the next stream."""
        self.is_over = False
        self.out = []
        self._scheduled = False
        self._blocked = False
        self._starved: deque[ClientStream] = deque()
        """Streams that wait for the connection's window, or until the transport accepts more."""

    def abandon(self, stream: ClientStream) -> None:
        """Reset a stream that nobody waits for any more."""
        raise NotImplementedError

    def forget(self, stream: ClientStream) -> None:
        """Remove a stream that is over."""
        raise NotImplementedError

    def begin(
        self,
        stream: ClientStream,
        block: bytes,
        body: AsyncIterator[bytes] | None = None,
        whole: bytes = b"",
        *,
        is_open: bool = False,
    ) -> None:
        """Send the head of a request on `stream`, whose id is `next_id`, and start sending its body.

        The body is an iterator `body` or bytes `whole`; if the stream `is_open`, it follows by `send_piece`.
        """
        has_body = body is not None or bool(whole) or is_open
        self.next_id += 2
        self.streams[stream.id] = stream
        self.out.append(
            frames.headers(stream.id, self.prefix(block), 0 if has_body else frames.END_STREAM, self.max_frame)
        )
        if not has_body:
            stream.is_sent = True
        elif whole and len(whole) <= min(stream.window, self.window, self.max_frame) and not self._blocked:
            self._send_data(stream, whole, ends=True)
        elif not is_open:
            stream.sending = self._loop.create_task(self._send_body(stream, body if body is not None else _once(whole)))
        if len(self.streams) == 1:
            self._flush()  # no other stream has frames that could be sent in the same write
        else:
            self.schedule()

    async def _send_body(self, stream: ClientStream, body: AsyncIterator[bytes]) -> None:
        try:
            async for piece in body:
                await self.send_piece(stream, piece)
            self._send_data(stream, b"", ends=True)
            self.schedule()
        except BodyAborted as error:  # the other side must not take the incomplete body for a complete one
            stream.fail(BadAnswer(str(error)))
            self.abandon(stream)

    async def send_piece(self, stream: ClientStream, piece: bytes) -> None:
        """Send a piece of a body as soon as the windows permit. Raises BodyAborted if the stream is over."""
        at = 0
        while at < len(piece):
            while self._blocked or min(stream.window, self.window) <= 0 or stream.is_forgotten:
                if stream.is_forgotten:
                    raise BodyAborted("the stream is over")
                if stream.window > 0:
                    self._starved.append(stream)
                stream.room = self._loop.create_future()
                await stream.room
            size = min(stream.window, self.window, self.max_frame, len(piece) - at)
            self._send_data(stream, piece[at : at + size], ends=False)
            self.schedule()
            at += size
        self._feed_starved()

    def _send_data(self, stream: ClientStream, data: bytes, *, ends: bool) -> None:
        size = len(data)
        stream.window -= size
        self.window -= size
        flags = frames.END_STREAM if ends else 0
        self.out.append(frames.pack_head(size << 8 | frames.DATA, flags, stream.id))
        if data:
            self.out.append(data)
        if ends:
            stream.is_sent = True
            if stream.remote_closed:
                self.forget(stream)

    def _feed_starved(self) -> None:
        """Wake the next stream that waits for the connection's window; that stream wakes the one after it."""
        while self._starved and self.window > 0 and not self._blocked:
            stream = self._starved.popleft()
            if not stream.is_forgotten:
                stream.may_send()
                return

    def widened(self, stream: ClientStream | None) -> None:
        if stream is None:
            self._feed_starved()
        else:
            stream.may_send()

    def schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self.out and not self.is_over:
            self._transport.write(b"".join(self.out))
        self.out.clear()

    def pause_writing(self) -> None:
        """Stop sending bodies: the transport's buffer is full."""
        self._blocked = True

    def resume_writing(self) -> None:
        """Resume sending bodies: the transport's buffer has drained."""
        self._blocked = False
        self._feed_starved()


async def _once(whole: bytes) -> AsyncIterator[bytes]:
    yield whole
