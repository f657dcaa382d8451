"""Bodies of watches that stand between a watch and its connection, and see each event on its way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.faults.interception import OpenWatch
from steersman.machinery.errors.status import StatusError
from steersman.net.message import BodyWriter

MOST_HELD: Final = 16 << 20
"""Bytes of events that are held back at most; then the watch is cut off, as that of a client that does not read."""
LENGTH: Final = 4
"""Bytes of the length before an event in protobuf."""


class InterceptedWatch:
    """Body of a watch that passes on everything. Subclasses change what they are made for.

    The connection sees it as the watch, and the watch as the connection. `_writer` is None before the start and after
    the end of the answer.
    """

    def __init__(self, inner: OpenWatch) -> None:
        self._inner = inner
        self._writer: BodyWriter | None = None

    # The connection's side

    def start(self, writer: BodyWriter) -> None:
        """Begin with the initial events."""
        self._writer = writer
        self._inner.start(self)

    def closed(self) -> None:
        """Release everything at the end of the answer."""
        self._writer = None
        self._inner.closed()

    def finish(self) -> None:
        """End the watch after the events that were written."""
        self._inner.finish()

    def failed(self, error: StatusError | None) -> None:
        """End the watch with an event of an error."""
        self._inner.failed(error)

    # The side of the watch, which writes its events here

    @property
    def buffered(self) -> int:
        """Bytes that the connection has not accepted yet."""
        return 0 if self._writer is None else self._writer.buffered

    def write(self, data: bytes) -> None:
        """Pass on events."""
        if self._writer is not None:
            self._writer.write(data)

    def end(self) -> None:
        """End the answer."""
        if self._writer is not None:
            self._writer.end()

    def abort(self) -> None:
        """Cut the answer off."""
        if self._writer is not None:
            self._writer.abort()

    async def drain(self) -> None:
        """Wait until little is buffered. Raises BodyAborted if the client is gone."""
        if self._writer is not None:
            await self._writer.drain()


def events_of(data: bytes) -> Iterator[bytes]:
    """Yield the events of a piece of a watch: lines of JSON, or frames of protobuf."""
    if data[:1] == b"{":
        yield from data.splitlines(keepends=True)
        return
    at = 0
    while at < len(data):
        end = at + LENGTH + int.from_bytes(data[at : at + LENGTH], "big")
        yield data[at:end]
        at = end
