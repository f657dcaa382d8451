"""Taking what no revision kept shows out of the file, in slices that leave the writer free in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from steersman.storage.sqlite.log import Log

_HOLD: Final = 0.01
"""Seconds that a slice aims to hold the writer's thread."""
_LONGEST_REST: Final = 0.1
"""Seconds between slices at most, if they take long."""
_DELETED: Final = (32, 512)
"""How many pages a slice deletes from: the least, with which compaction begins, and the most."""
_GIVEN_BACK: Final = (8, 256)
"""How many pages are given back to the file system at once."""
_PAGE: Final = 4096
_FREE_PAGES_KEPT: Final = 1024
"""Free pages up to this many, or up to a quarter of the file, are kept for what is written next."""


def begin(log: Log, revision: int) -> None:
    """From here on, revisions before `revision` cannot be read. Durable before anything is deleted."""
    log.connection.execute("UPDATE meta SET compact_revision = max(compact_revision, ?)", (revision,))


def paced(size: int, seconds: float, bounds: tuple[int, int]) -> int:
    """How much the next slice should do, when one of `size` took `seconds`: as much as takes _HOLD, within `bounds`.

    It grows to the double at most, and shrinks at once: what made one slow, as a disk that others use, may go on.
    """
    least, most = bounds
    wanted = int(size * min(_HOLD / max(seconds, 1e-6), 2))
    return min(max(wanted, least), most)


class Slices:
    """A part of compaction, cut so that a slice takes about as long whatever the disk, the sizes and others do."""

    def __init__(self, work: Callable[[Log, int], bool], bounds: tuple[int, int]) -> None:
        """`work` does so many pages of it, and says whether there is more."""
        self._work = work
        self._bounds = bounds
        self.size = bounds[0]
        """How many pages the next slice does."""
        self.rest = 0.0
        """Seconds for which the writer should be left to others after the last slice: as long as that took."""

    def run(self, log: Log) -> bool:
        """Does a slice, on the writer's thread; whether there is more to do. Raises sqlite3.Error."""
        began = time.perf_counter()
        more = self._work(log, self.size)
        took = time.perf_counter() - began
        self.size = paced(self.size, took, self._bounds)
        self.rest = min(took, _LONGEST_REST)
        return more


def deletes() -> Slices:
    """Deletes what `begin` gave up."""
    return Slices(delete_slice, _DELETED)


def vacuums() -> Slices:
    """Gives free pages back to the file system if there are many."""
    return Slices(vacuum_slice, _GIVEN_BACK)


def delete_slice(log: Log, pages: int) -> bool:
    """Deletes what the next revisions replaced, on about so many pages; whether there is more to delete.

    Every write names the one it replaced, so what is dead is found without looking at what lives: the replaced rows
    and the deletes of each slice of revisions. One value is deleted in one slice, however large it is.
    """
    _, target, done = log.revisions()
    if done >= target:
        return False
    upto = min(done + pages, target)
    (full,) = log.connection.execute(
        """SELECT min(revision) FROM (
               SELECT n.revision, sum(1 + ifnull(length(p.value), 0) / ?) OVER (ORDER BY n.revision) AS pages
               FROM log n LEFT JOIN log p ON p.revision = n.prev_revision
               WHERE n.revision > ? AND n.revision <= ?)
           WHERE pages >= ?""",
        (_PAGE, done, upto, pages),
    ).fetchone()
    upto = upto if full is None else full
    connection = log.connection
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            """DELETE FROM log WHERE revision IN
               (SELECT prev_revision FROM log WHERE revision > ? AND revision <= ? AND prev_revision > 0)""",
            (done, upto),
        )
        connection.execute("DELETE FROM log WHERE revision > ? AND revision <= ? AND value IS NULL", (done, upto))
        connection.execute("UPDATE meta SET compacted_revision = ?", (upto,))
        connection.execute("COMMIT")
    except BaseException:
        log.rollback()
        raise
    return upto < target


def vacuum_slice(log: Log, pages: int) -> bool:
    """Gives so many free pages back to the file system if there are many; whether there are more to give."""
    connection = log.connection
    free, all_pages = connection.execute(
        "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"
    ).fetchone()
    if free <= max(_FREE_PAGES_KEPT, all_pages // 4):
        return False
    # The statement returns a row without columns after each page, where `execute` ends it; a script goes to its end.
    connection.executescript(f"PRAGMA incremental_vacuum({pages})")
    left = connection.execute("PRAGMA freelist_count").fetchone()[0]
    # A file rebuilt with other settings gives nothing back.
    return bool(left < free)
