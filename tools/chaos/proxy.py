"""A proxy of TCP that stands for the network between two programs: it passes on, is slow, loses everything, cuts off.

It needs no rights, so that partitions can be made on any machine. What it cannot do is to lose the first packet of a
connection: who connects while everything is lost gets a connection on which nothing comes (`wires` loses that too).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Final

_CHUNK: Final = 1 << 16
_FROM: Final = re.compile(rb"(?i)x-server-from: *([0-9a-f]+)")
"""Header with the ID of an etcd member, in its first request on a connection."""


class Proxy:
    """Listens on a free port and passes on to another one; the members may be changed at any time."""

    def __init__(self, to: int, *, host: str = "127.0.0.1", address: str = "127.0.0.1") -> None:
        """Connections are made to the port `to` of `host`; it listens on `address`."""
        self._to = to
        self._host = host
        self.address = address
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._is_held = self._answers_held = self._is_cut = False
        self._shunned: frozenset[str] = frozenset()
        self.delay = 0.0
        """Seconds that each piece takes."""
        self.port = 0

    async def start(self) -> None:
        """Listens; on the same port as before if it has listened already."""
        self._server = await asyncio.start_server(self._accepted, self.address, self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Ends everything."""
        if self._server is not None:
            self._server.close()
        self._drop_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    # Faults

    def hold(self, *, answers_only: bool = False) -> None:
        """Nothing comes through any more, and connections stay open, as if packets were lost."""
        self._is_held, self._answers_held = not answers_only, True

    def shun(self, members: frozenset[str]) -> None:
        """Cut connections from these members of etcd, by ID."""
        self._shunned = members

    def cut(self) -> None:
        """All connections are reset, and so is each new one."""
        self._is_cut = True
        self._drop_all()

    def heal(self) -> None:
        """Everything comes through again, what was held too."""
        self._is_held = self._answers_held = self._is_cut = False
        self._shunned = frozenset()
        self.delay = 0.0
        self._changed.set()
        self._changed = asyncio.Event()

    # Connections

    def _drop_all(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._open.add(writer)
        try:
            if self._is_cut:
                return
            first = await reader.read(_CHUNK)
            match = _FROM.search(first)
            source = match[1].decode() if match else ""
            await self._passable(source, is_answer=False)
            with contextlib.suppress(OSError):
                await self._connect(first, reader, writer, source)
        except (OSError, asyncio.CancelledError):  # the server of streams would tell of who is cancelled
            return
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _connect(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str
    ) -> None:
        there, back = await asyncio.open_connection(self._host, self._to)
        self._open.add(back)
        pumps: list[asyncio.Task[None]] = []
        try:
            back.write(first)
            pumps = [
                asyncio.ensure_future(self._pump(reader, back, source, is_answer=False)),
                asyncio.ensure_future(self._pump(there, writer, source, is_answer=True)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._open.discard(back)
            back.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str, *, is_answer: bool
    ) -> None:
        while True:
            data = await reader.read(_CHUNK)
            await self._passable(source, is_answer=is_answer)
            if not data:
                return
            if self.delay:
                await asyncio.sleep(self.delay)
            writer.write(data)
            await writer.drain()

    async def _passable(self, source: str, *, is_answer: bool) -> None:
        while self._is_held or (is_answer and self._answers_held) or source in self._shunned:
            await self._changed.wait()
