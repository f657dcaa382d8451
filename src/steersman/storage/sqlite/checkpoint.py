"""Checkpoints of the write-ahead log in a thread of their own instead of within a commit.

SQLite would checkpoint at the end of the commit that makes the log long. Such a commit takes as long as the disk needs
for some thousand pages of the file, and all writers wait for it.
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
"""Pages written to the log after which a checkpoint starts."""
_FEW: Final = 250
"""Pages that may be left to the writer's thread, which alone can complete the checkpoint."""
_ROUNDS: Final = 4
"""The most rounds of a checkpoint of a log that grows meanwhile."""
_PAGE: Final = 4096

_PLAY: Final = "PRAGMA wal_checkpoint(PASSIVE)"
"""Copies committed pages into the file without waiting for other connections or blocking them."""


def pages_of(rows: int, size: int) -> int:
    """Return an estimate of the pages that a commit of `rows` rows, with `size` bytes in all, adds to the log.

    A single write was measured to take four pages. Many writes share those of the table, and some of the index.
    """
    return 3 + rows // 4 + -(-size // _PAGE)


class Checkpointer:
    """A thread that checkpoints the log into the file, on a connection of its own.

    If all of the log is in the file, the next commit restarts it. As commits go on during a checkpoint, the writer's
    thread copies the last few pages, between two batches. Pages are only estimated: SQLite itself checkpoints a log
    that is longer than estimated in a commit, at `wal_autocheckpoint`.
    """

    def __init__(
        self,
        path: Path,
        writing: sqlite3.Connection,
        post: Callable[[Callable[[], object]], None],
        *,
        durable: bool,
    ) -> None:
        """Take the file. `writing` is the writer's connection; `post` runs a job on the writer's thread."""
        self._path = path
        self._writing = writing
        self._post = post
        self._durable = durable
        self._written = 0
        """The estimated number of pages written so far; `_played` is how many of these were checkpointed."""
        self._played = 0
        self._connection: sqlite3.Connection | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sqlite-checkpoint")
        self._playing: Future[None] = Future()
        self._playing.set_result(None)

    def wrote(self, pages: int) -> None:
        """Record about how many pages were written to the log. Called on the writer's thread."""
        self._written += pages
        if self._written - self._played >= _LONG and self._playing.done():
            # No thread can start while the interpreter shuts down; the next process that opens the file has the log.
            with contextlib.suppress(RuntimeError):
                self._playing = self._pool.submit(self._play)

    async def caught_up(self) -> None:
        """Return when no checkpoint is running. Code that writes much must await this, or the log grows without limit."""
        playing = self._playing
        if not playing.done():
            await shielded(asyncio.wrap_future(playing))

    def _play(self) -> None:
        """Checkpoint the log. Runs on the checkpoint thread."""
        for _ in range(_ROUNDS):
            written = self._written
            try:
                if self._connection is None:
                    self._connection = connect(self._path, cache_kib=64, durable=self._durable)
                self._connection.execute(_PLAY).fetchone()
            except sqlite3.Error as error:
                # Nothing is lost: the log keeps the pages that the file does not have.
                logger.warning("a checkpoint of the write-ahead log into %s failed: %s", self._path, error)
                self._played = written
                return
            self._played = written
            if self._written - written <= _FEW:
                break
        self._post(self._play_the_rest)

    def _play_the_rest(self) -> None:
        """Checkpoint the last pages. Runs on the writer's thread."""
        try:
            self._writing.execute(_PLAY).fetchone()
        except sqlite3.Error as error:
            logger.warning("a checkpoint of the end of the write-ahead log into %s failed: %s", self._path, error)
        self._played = self._written

    def stop(self) -> None:
        """Wait for a running checkpoint and close the connection. Blocks."""
        self._pool.shutdown(wait=True)
        if self._connection is not None:
            self._connection.close()
