"""The channel of one page: a WebSocket that carries all streams of the page.

A browser opens at most six connections to one origin, and a page with several watches would use them up.

The page sends `{"op": "open", "id": 1, "path": "/api/v1/pods?watch=true", "accept": "..."}` for the lines of a path of the
API server, or with `"source": "cluster"` for a source of the front, and `{"op": "close", "id": 1}`. It gets
`{"id": 1, "lines": [...]}` with whole JSON documents, and at the end `{"id": 1, "end": {"code": 200, "message": ""}}`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

import msgspec

from steersman.client.transport import Transport, Unreachable
from steersman.inspector.forwarding import AGENT
from steersman.inspector.lines import LineTooLong, batches_of_lines
from steersman.net.message import Upgraded
from steersman.net.websocket.messages import MessageConnection, open_messages

MAX_MESSAGE: Final = 16 << 10
"""Longest message of the page in bytes."""
MAX_STREAMS: Final = 32
"""Open streams of one page."""
_MOST_OF_ERROR: Final = 64 << 10

Source = Callable[[], AsyncIterator[list[bytes]]]
"""A stream of the front: batches of JSON documents."""


class _Order(msgspec.Struct):
    op: str
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
    """Runs the streams of one page: `serve`, until the page goes."""

    def __init__(self, transport: Transport, sources: Mapping[str, Source]) -> None:
        self._transport = transport
        self._sources = sources
        self._streams: dict[int, asyncio.Task[None]] = {}

    async def serve(self, connection: Upgraded) -> None:
        """Take orders and send lines until the page closes the connection, or sends anything else than an order."""
        messages = await open_messages(connection, MAX_MESSAGE)
        try:
            while (data := await messages.receive()) is not None:
                try:
                    order = _ORDERS.decode(data)
                except msgspec.DecodeError:
                    return
                self._obey(order, messages)
        finally:
            for each in self._streams.values():
                each.cancel()
            if self._streams:
                await asyncio.wait(tuple(self._streams.values()))
            await messages.close()

    def _obey(self, order: _Order, messages: MessageConnection) -> None:
        running = self._streams.pop(order.id, None)
        if running is not None:
            running.cancel()
        if order.op != "open":
            return
        if len(self._streams) >= MAX_STREAMS:
            work: Awaitable[None] = self._end(
                messages, order.id, _End(429, f"a page has at most {MAX_STREAMS} streams")
            )
        else:
            work = self._run(order, messages)
        task = self._streams[order.id] = asyncio.ensure_future(work)
        task.add_done_callback(lambda done: self._forget(order.id, done))

    def _forget(self, number: int, task: asyncio.Task[None]) -> None:
        if self._streams.get(number) is task:
            del self._streams[number]

    async def _run(self, order: _Order, messages: MessageConnection) -> None:
        """Send the lines of one stream, then its end."""
        try:
            if order.source:
                source = self._sources.get(order.source)
                end = (
                    _End(404, "there is no such source")
                    if source is None
                    else await _send(order.id, source(), messages)
                )
            else:
                end = await self._relay(order, messages)
            await self._end(messages, order.id, end)
        except ConnectionResetError:
            pass  # the page is gone; `serve` ends too

    async def _relay(self, order: _Order, messages: MessageConnection) -> _End:
        """Send the lines of a path of the API server and return the end."""
        if not order.path.startswith("/"):
            return _End(400, "a path begins with a slash")
        try:
            answer = await self._transport.send(
                "GET", order.path, (("user-agent", AGENT), ("accept", order.accept)), b""
            )
        except Unreachable as error:
            return _End(503, str(error))
        try:
            if answer.status != 200:
                return _End(answer.status, (await answer.read())[:_MOST_OF_ERROR].decode(errors="replace"))
            return await _send(order.id, batches_of_lines(answer.pieces()), messages)
        except Unreachable as error:
            return _End(503, str(error))
        except LineTooLong:
            return _End(507, "an event is too large for the page")
        finally:
            await answer.aclose()

    async def _end(self, messages: MessageConnection, number: int, end: _End) -> None:
        await messages.send(msgspec.json.encode(_Ended(number, end)).decode())


async def _send(number: int, batches: AsyncIterator[list[bytes]], messages: MessageConnection) -> _End:
    async for lines in batches:
        await messages.send(msgspec.json.encode(_Lines(number, [msgspec.Raw(each) for each in lines])).decode())
    return _End()
