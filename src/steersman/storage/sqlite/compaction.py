"""Removal of rows that no readable revision needs, in slices between which the writer is free."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from steersman.storage.sqlite.log import Log

_HOLD: Final = 0.01
"""The seconds that a slice should take on the writer's thread."""
_LONGEST_REST: Final = 0.1
"""The longest pause between slices, in seconds."""
_DELETED: Final = (32, 512)
"""The fewest (and first) and the most pages from which one slice deletes."""
_GIVEN_BACK: Final = (8, 256)
"""The fewest and the most pages that one slice returns to the file system."""
_PAGE: Final = 4096
_FREE_PAGES_KEPT: Final = 1024
"""Free pages up to this number, or up to a quarter of the file, are kept for later writes."""


def begin(log: Log, revision: int) -> None:
    """Make revisions before `revision` unreadable; this is durable before anything is deleted."""
    log.connection.execute("UPDATE meta SET compact_revision = max(compact_revision, ?)", (revision,))


def paced(size: int, seconds: float, bounds: tuple[int, int]) -> int:
    """Return the size of the next slice, if one of `size` took `seconds`: one that takes _HOLD, within `bounds`.

    It at most doubles, but shrinks immediately, because the cause of a slow slice, such as other users of the disk, may
    persist.
    """
    least, most = bounds
    wanted = int(size * min(_HOLD / max(seconds, 1e-6), 2))
    return min(max(wanted, least), most)


class Slices:
    """A part of compaction in slices of about equal duration, whatever the disk, the sizes and other users do."""

    def __init__(self, work: Callable[[Log, int], bool], bounds: tuple[int, int]) -> None:
        """Take a function that does the work for a number of pages and returns True if some remains."""
        self._work = work
        self._bounds = bounds
        self.size = bounds[0]
        """The number of pages of the next slice."""
        self.rest = 0.0
        """The pause in seconds after the last slice, which leaves the writer free for as long as the slice took."""

    def run(self, log: Log) -> bool:
        """Run a slice on the writer's thread; return True if work remains. Raises sqlite3.Error."""
        began = time.perf_counter()
        more = self._work(log, self.size)
        took = time.perf_counter() - began
        self.size = paced(self.size, took, self._bounds)
        self.rest = min(took, _LONGEST_REST)
        return more


def deletes() -> Slices:
    """Return the slices that delete the rows of unreadable revisions."""
    return Slices(delete_slice, _DELETED)


def vacuums() -> Slices:
    """Return the slices that return free pages to the file system if there are many."""
    return Slices(vacuum_slice, _GIVEN_BACK)


def delete_slice(log: Log, pages: int) -> bool:
    """Delete rows that later revisions replaced, on about `pages` pages; return True if some remain.

    Every row has the revision that it replaced, so dead rows are found without a scan of live ones: for each slice of
    revisions, the replaced rows and the deletes. A value is deleted within one slice, however large it is.
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
    """Return up to `pages` free pages to the file system if there are many; return True if there are still many."""
    connection = log.connection
    free, all_pages = connection.execute(
        "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"
    ).fetchone()
    if free <= max(_FREE_PAGES_KEPT, all_pages // 4):
        return False
    # The statement returns an empty row after each page, at which `execute` stops; a script runs to its end.
    connection.executescript(f"PRAGMA incremental_vacuum({pages})")
    left = connection.execute("PRAGMA freelist_count").fetchone()[0]
    # A file that was rebuilt with other settings returns no pages.
    return bool(left < free)
