"""The channel of one page: a WebSocket that carries all streams of the page.

A browser opens at most six connections to one origin, and a page with several watches would use them up.

The page sends `{"op": "open", "id": 1, "path": "/api/v1/pods?watch=true", "accept": "..."}` for the lines of a path of the
API server, or with `"source": "cluster"` for a source of the front, and `{"op": "close", "id": 1}`. It gets
`{"id": 1, "lines": [...]}` with whole JSON documents, and at the end `{"id": 1, "end": {"code": 200, "message": ""}}`.
An order with the id of an open stream ends that stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final, Literal

import msgspec

from steersman.client.errors import error_from_response
from steersman.client.transport import Response, Transport, Unreachable
from steersman.inspector.forwarding import AGENT, check_target
from steersman.inspector.guard import Refused
from steersman.inspector.lines import BadLine, batches_of_lines
from steersman.inspector.source import Source, SourceFailed
from steersman.net.message import Upgraded
from steersman.net.websocket.messages import MessageConnection, open_messages

logger = logging.getLogger(__name__)

MAX_MESSAGE: Final = 16 << 10
"""Longest message of the page in bytes."""
MAX_STREAMS: Final = 32
"""Open streams of one page."""
_MOST_OF_ERROR: Final = 64 << 10


class _Order(msgspec.Struct):
    op: Literal["open", "close"]
    id: int
    path: str = ""
    accept: str = "application/json"
    source: str = ""


class _End(msgspec.Struct):
    code: int = 200
    message: str = ""


class _Lines(msgspec.Struct):
    id: int
    lines: list[msgspec.Raw]


class _Ended(msgspec.Struct):
    id: int
    end: _End


_ORDERS: Final = msgspec.json.Decoder(_Order)


class Channel:
    """Runs the streams of one page: `serve`, until the page goes.

    A stream waits with its next lines until the page has taken the last ones, so that it holds few of them.
    """

    def __init__(self, transport: Transport, sources: Mapping[str, Source]) -> None:
        self._transport = transport
        self._sources = sources
        self._streams: dict[int, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        """Held while a message is made and sent: all streams together have one message in memory."""

    async def serve(self, connection: Upgraded) -> None:
        """Take orders and send lines until the page closes the connection, or sends anything else than an order."""
        messages = await open_messages(connection, MAX_MESSAGE)
        try:
            while (data := await messages.receive()) is not None:
                try:
                    order = _ORDERS.decode(data)
                except (msgspec.DecodeError, RecursionError):
                    return
                await self._obey(order, messages)
        except ConnectionResetError:
            pass  # the page is gone
        finally:
            for each in self._streams.values():
                each.cancel()
            if self._streams:
                await asyncio.wait(tuple(self._streams.values()))
            await messages.close()

    async def _obey(self, order: _Order, messages: MessageConnection) -> None:
        """End the stream of the order's id, and open one if the order says so. Raises ConnectionResetError."""
        running = self._streams.pop(order.id, None)
        if running is not None:
            running.cancel()
        if order.op == "close":
            return
        if len(self._streams) >= MAX_STREAMS:
            # no task: a page that reads nothing could have any number of them
            end = _End(429, f"a page has at most {MAX_STREAMS} streams")
            await self._send(messages, _Ended(order.id, end))
            return
        task = self._streams[order.id] = asyncio.ensure_future(self._run(order, messages))
        task.add_done_callback(lambda done: self._forget(order.id, done))

    def _forget(self, number: int, task: asyncio.Task[None]) -> None:
        if self._streams.get(number) is task:
            del self._streams[number]

    async def _run(self, order: _Order, messages: MessageConnection) -> None:
        """Send the lines of one stream, then its end."""
        try:
            end = await self._ended(order, messages)
            await self._send(messages, _Ended(order.id, end))
        except ConnectionResetError:
            pass  # the page is gone; `serve` ends too

    async def _ended(self, order: _Order, messages: MessageConnection) -> _End:
        """Send the lines of one stream and return its end."""
        try:
            if not order.source:
                await self._relay(order, messages)
            elif (source := self._sources.get(order.source)) is not None:
                await self._send_lines(order.id, source(), messages)
            else:
                return _End(404, "there is no such source")
        except (Refused, SourceFailed) as error:
            return _End(error.status, str(error))
        except Unreachable as error:
            return _End(503, str(error))
        except BadLine as error:
            return _End(502, str(error))
        except ConnectionResetError:
            raise
        except Exception:
            logger.exception("a stream of the page failed")
            return _End(500, "the stream failed; the terminal shows more")
        return _End()

    async def _relay(self, order: _Order, messages: MessageConnection) -> None:
        """Send the lines of a path of the API server. Raises Refused, Unreachable and BadLine."""
        check_target(order.path)
        if not (order.accept.isascii() and order.accept.isprintable()):
            raise Refused(400, "A field of a request has printable characters only.")
        answer = await self._transport.send("GET", order.path, (("user-agent", AGENT), ("accept", order.accept)), b"")
        try:
            if answer.status != 200:
                error = error_from_response(answer.status, "", await _beginning(answer))
                raise Refused(answer.status, str(error))
            await self._send_lines(order.id, batches_of_lines(answer.pieces()), messages)
        finally:
            await answer.aclose()

    async def _send_lines(
        self, number: int, batches: AsyncGenerator[list[bytes], None], messages: MessageConnection
    ) -> None:
        async with aclosing(batches):
            async for lines in batches:
                await self._send(messages, _Lines(number, [msgspec.Raw(each) for each in lines]))

    async def _send(self, messages: MessageConnection, message: _Lines | _Ended) -> None:
        async with self._turn:
            await messages.send_text(msgspec.json.encode(message))


async def _beginning(answer: Response) -> bytes:
    """Return the body of an error, without the rest of one that is very long. Raises Unreachable."""
    found = bytearray()
    async for piece in answer.pieces():
        found += piece
        if len(found) >= _MOST_OF_ERROR:
            break
    return bytes(found)
