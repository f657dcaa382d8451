"""Playing the write-ahead log into the file beside the commits, and not in one of them.

SQLite does so at the end of the commit that makes the log long. That one takes as long as the disk needs for some
thousand pages of the file, and everybody who writes waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from steersman.storage.sqlite.file import connect
from steersman.work.shielding import shielded

logger = logging.getLogger(__name__)

_LONG: Final = 1000
"""The log is played into the file when about so many pages were written to it."""
_FEW: Final = 250
"""So many are left to the writer's thread, which alone can bring the log to its end."""
_ROUNDS: Final = 4
"""How often a log that grows meanwhile is gone after."""
_PAGE: Final = 4096

_PLAY: Final = "PRAGMA wal_checkpoint(PASSIVE)"
"""Plays what is committed into the file, without waiting for anybody or keeping anybody waiting."""


def pages_of(rows: int, size: int) -> int:
    """About how many pages a commit of so many rows, of `size` bytes together, puts into the log.

    One write was found to take four. Many share those of the table, and some of the index.
    """
    return 3 + rows // 4 + -(-size // _PAGE)


class Checkpointer:
    """A thread that plays the log into the file, on a connection of its own.

    The next commit begins the log anew if all of it is in the file. As commits go on meanwhile, the writer's thread
    plays the little that came last, between two batches. What is counted is an estimate: a log that is longer than that
    is played by SQLite in a commit, at `wal_autocheckpoint`.
    """

    def __init__(
        self,
        path: Path,
        writing: sqlite3.Connection,
        post: Callable[[Callable[[], object]], None],
        *,
        durable: bool,
    ) -> None:
        """`writing` is the writer's connection, `post` runs a job on its thread."""
        self._path = path
        self._writing = writing
        self._post = post
        self._durable = durable
        self._written = 0
        """Pages written so far, of which so many were..."""
        self._played = 0
        self._connection: sqlite3.Connection | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sqlite-checkpoint")
        self._playing: Future[None] = Future()
        self._playing.set_result(None)

    def wrote(self, pages: int) -> None:
        """Says that about so many pages were written to the log. On the writer's thread."""
        self._written += pages
        if self._written - self._played >= _LONG and self._playing.done():
            # While the interpreter ends no thread begins; whoever opens the file next has the log.
            with contextlib.suppress(RuntimeError):
                self._playing = self._pool.submit(self._play)

    async def caught_up(self) -> None:
        """Returns when the log is not being played. Who writes much waits for that, or the log grows without end."""
        playing = self._playing
        if not playing.done():
            await shielded(asyncio.wrap_future(playing))

    def _play(self) -> None:
        """On the thread."""
        for _ in range(_ROUNDS):
            written = self._written
            try:
                if self._connection is None:
                    self._connection = connect(self._path, cache_kib=64, durable=self._durable)
                self._connection.execute(_PLAY).fetchone()
            except sqlite3.Error as error:
                # Nothing is lost by that: the log keeps what the file has not.
                logger.warning("the write-ahead log cannot be played into %s: %s", self._path, error)
                self._played = written
                return
            self._played = written
            if self._written - written <= _FEW:
                break
        self._post(self._play_the_rest)

    def _play_the_rest(self) -> None:
        """On the writer's thread."""
        try:
            self._writing.execute(_PLAY).fetchone()
        except sqlite3.Error as error:
            logger.warning("the end of the write-ahead log cannot be played into %s: %s", self._path, error)
        self._played = self._written

    def stop(self) -> None:
        """Waits for what is running and closes the connection. Blocks."""
        self._pool.shutdown(wait=True)
        if self._connection is not None:
            self._connection.close()
