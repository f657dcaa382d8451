"""Taking what no revision kept shows out of the file, in slices that leave the writer free in between."""

from __future__ import annotations

from typing import Final

from steersman.storage.sqlite.log import Log

_SLICE: Final = 500
"""Revisions a slice looks at."""
_VACUUM_SLICE: Final = 512
"""Pages given back to the file system at once."""
_FREE_PAGES_KEPT: Final = 1024
"""Free pages up to this many, or up to a quarter of the file, are kept for what is written next."""


def begin(log: Log, revision: int) -> None:
    """From here on, revisions before `revision` cannot be read. Durable before anything is deleted."""
    log.connection.execute("UPDATE meta SET compact_revision = max(compact_revision, ?)", (revision,))


def delete_slice(log: Log) -> bool:
    """Deletes some of what `begin` gave up; whether there is more to delete.

    Every write names the one it replaced, so what is dead is found without looking at what lives: the replaced rows
    and the deletes of each slice of revisions.
    """
    _, target, done = log.revisions()
    if done >= target:
        return False
    upto = min(done + _SLICE, target)
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


def vacuum_slice(log: Log) -> bool:
    """Gives some free pages back to the file system if there are many; whether there are more to give."""
    connection = log.connection
    free, pages = connection.execute(
        "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"
    ).fetchone()
    if free <= max(_FREE_PAGES_KEPT, pages // 4):
        return False
    connection.execute(f"PRAGMA incremental_vacuum({_VACUUM_SLICE})").fetchall()
    left = connection.execute("PRAGMA freelist_count").fetchone()[0]
    # A file rebuilt with other settings gives nothing back.
    return bool(left < free)
