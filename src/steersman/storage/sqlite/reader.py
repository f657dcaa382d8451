"""Connections for reading, each in a thread of its own, so that a read never blocks the event loop or the writer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from steersman.storage.sqlite.file import connect
from steersman.storage.sqlite.log import Log

T = TypeVar("T")


class Readers:
    """A pool of reader threads."""

    def __init__(self, path: Path, *, threads: int, cache_kib: int) -> None:
        self._path = path
        self._cache_kib = cache_kib
        self._local = threading.local()
        self._logs: list[Log] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sqlite-reader")

    async def run(self, read: Callable[[Log], T]) -> T:
        """Call `read` in one of the threads; return or raise its result."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._call, read)

    def _call(self, read: Callable[[Log], T]) -> T:
        log: Log | None = getattr(self._local, "log", None)
        if log is None:
            connection = connect(self._path, cache_kib=self._cache_kib)
            connection.execute("PRAGMA query_only = ON")
            log = self._local.log = Log(connection)
            self._logs.append(log)
        return read(log)

    def stop(self) -> None:
        """Wait for running reads and close the connections. Blocks."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for log in self._logs:
            log.connection.close()
