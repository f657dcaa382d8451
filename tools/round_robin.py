"""Several servers behind one address: each connection is for the next of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Sequence

_PIECE = 64 << 10


class RoundRobin:
    """Takes connections on 127.0.0.1, at `port`, and passes on what comes both ways, as it is; to be closed.

    A server that does not take a connection is passed over, so one that has ended and comes back at the same address is
    asked again. A connection stays where it is: when its server ends so does it, with the watches on it.

    With `late` and `seconds`, answers on connections on which that text was sent are passed on so much later.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], *, late: bytes = b"", seconds: float = 0.0) -> None:
        self._late = late
        self._seconds = seconds
        self._count = len(addresses)
        self._addresses = itertools.cycle(addresses)
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._take, "127.0.0.1", 0))
        self.port = int(self._server.sockets[0].getsockname()[1])
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            behind, to = await self._connect()
            passing = _Passing(self._late, self._seconds)
            try:
                async with asyncio.TaskGroup() as ways:
                    ways.create_task(passing.questions(reader, to))
                    ways.create_task(passing.answers(behind, writer))
            except* OSError:
                pass  # one of the two has gone: so does the other
            finally:
                to.close()
        except OSError:
            pass  # as if nobody listened
        finally:
            self._connections.discard(task)
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the next server that takes it. Raises OSError if there is none."""
        for _ in range(self._count - 1):
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(*next(self._addresses))
        return await asyncio.open_connection(*next(self._addresses))

    def close(self) -> None:
        """Takes nothing any more, and cuts off what is under way."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for each in self._connections:
            each.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)


class _Passing:
    """Both ways of one connection."""

    def __init__(self, late: bytes, seconds: float) -> None:
        self._late = late
        self._seconds = seconds
        self._is_late = False

    async def questions(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Raises ConnectionResetError in the end."""
        while data := await reader.read(_PIECE):
            self._is_late = self._is_late or (bool(self._late) and self._late in data)
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("this side has ended")

    async def answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Raises ConnectionResetError in the end."""
        while data := await reader.read(_PIECE):
            if self._is_late:
                await asyncio.sleep(self._seconds)
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("this side has ended")
