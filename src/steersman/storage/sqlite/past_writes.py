"""Statements that read history: the writes of keys, the revision at a time, and the account of replaced values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from steersman.storage.interface import Change, Changes, Event, KeyValue
from steersman.storage.keys import after
from steersman.storage.origins import decode_record
from steersman.storage.retention import ROW_OVERHEAD, Span
from steersman.storage.rewind import bounds
from steersman.storage.sqlite.log import Log, check_row

_PAGE_BYTES: Final = 8 << 20
"""The bytes of values at which a page ends. A single write has at most twice 3 MiB."""
_GROUP: Final = 128
"""Revisions of a span."""
_NO_END: Final = b""
_NEWEST: Final = (1 << 63) - 1
"""A revision above all."""
_EMPTY: Final = 1
"""The revision of a new store."""
_COLUMNS: Final = "revision, key, value, create_revision, prev_revision, expires, checksum, record"


def history(log: Log, prefix: str, before: int, limit: int, *, is_key: bool) -> Changes:
    """Return a page of writes, newest first; see interface.Storage.history."""
    low, high = bounds(prefix, "")
    end = after(prefix) if is_key else _NO_END if high is None else high
    compact = log.revisions()[1]
    items: list[Change] = []
    size = 0
    before = before or _NEWEST
    while revisions := _revisions(log, low, end, before, limit + 1):
        for revision in revisions:
            if len(items) == limit or size >= _PAGE_BYTES:
                return Changes(items, True)
            change = _change(log, revision, compact)
            if change is not None:
                items.append(change)
                event = change.event
                size += sum(len(each.value) for each in (event.current, event.previous) if each is not None)
        before = revisions[-1]
    return Changes(items, False)


def _revisions(log: Log, low: str, end: str | bytes, before: int, limit: int) -> list[int]:
    """Return the newest revisions of keys in a range, by the index alone: a page may end before the last of them."""
    found = log.connection.execute(
        "SELECT revision FROM log INDEXED BY log_key WHERE key >= ? AND key < ? AND revision < ? "
        "ORDER BY revision DESC LIMIT ?",
        (low, end, before, limit),
    )
    return [revision for (revision,) in found]


def _change(log: Log, revision: int, compact: int) -> Change | None:
    """Return a write, None if it is not readable. Raises StorageDamaged."""
    row = _row(log, revision)
    if row is None or (revision <= compact and _is_unreadable(log, row, compact)):
        return None  # compaction has removed it, or will
    replaced = None
    if row[4] and revision > compact and (previous := _row(log, row[4])) is not None and previous[2] is not None:
        replaced = KeyValue(previous[1], previous[2], previous[3], previous[0])
    current = None if row[2] is None else KeyValue(row[1], row[2], row[3], revision)
    event = Event(revision, row[1], current, replaced)
    return Change(event, decode_record(row[7]), is_oldest=revision <= compact)


def _row(log: Log, revision: int) -> tuple[Any, ...] | None:
    """Return a row. Raises StorageDamaged."""
    row: tuple[Any, ...] | None = log.connection.execute(
        f"SELECT {_COLUMNS} FROM log WHERE revision = ?", (revision,)
    ).fetchone()
    if row is not None:
        check_row(row[:7])
    return row


def _is_unreadable(log: Log, row: tuple[Any, ...], compact: int) -> bool:
    """Return True for a row up to the compacted revision that is a deletion, or that another such row has replaced."""
    if row[2] is None:
        return True
    (newer,) = log.connection.execute(
        "SELECT EXISTS (SELECT 1 FROM log WHERE key = ? AND revision > ? AND revision <= ?)", (row[1], row[0], compact)
    ).fetchone()
    return bool(newer)


class _Times:
    """The times of revisions as a sequence, for a search; a revision without a time has that of the next one."""

    def __init__(self, log: Log, newest: int) -> None:
        self._log = log
        self._newest = newest
        self._latest = 0

    @property
    def fall(self) -> bool:
        """True if the last write has an earlier time than another that was looked at: the clock was set back."""
        (text,) = self._log.connection.execute(
            "SELECT record FROM log WHERE record IS NOT NULL ORDER BY revision DESC LIMIT 1"
        ).fetchone() or (None,)
        record = decode_record(text)
        return record is not None and record.milliseconds < self._latest

    def __len__(self) -> int:
        return self._newest + 1

    def __getitem__(self, revision: int) -> int:
        found = self._log.connection.execute(
            "SELECT record FROM log WHERE revision >= ? AND record IS NOT NULL ORDER BY revision LIMIT 1", (revision,)
        ).fetchone()
        record = None if found is None else decode_record(found[0])
        if record is None:
            return 1 << 62
        self._latest = max(self._latest, record.milliseconds)
        return record.milliseconds


def revision_at(log: Log, seconds: float) -> int:
    """Return the newest readable revision that was written by a Unix time, 0 if that is not known.

    Before the first write of a new store it is 1. After the clock was set back, it is the newest one of all with such
    a time.
    """
    newest, compact, _ = log.revisions()
    times = _Times(log, newest)
    wanted = int(seconds * 1000) + 1
    found = bisect_left(times, wanted, lo=compact) - 1
    if times.fall:
        found = _last_by(log, compact, wanted)
    if found >= newest:
        return newest
    if found < compact:
        return 0 if compact or not _begins_recorded(log) else _EMPTY
    # Without a recorded write by that time, nobody knows.
    recorded = log.connection.execute(
        "SELECT record FROM log WHERE revision <= ? AND record IS NOT NULL ORDER BY revision DESC LIMIT 1", (found,)
    ).fetchone()
    record = None if recorded is None else decode_record(recorded[0])
    return found if record is not None and record.milliseconds < wanted else 0


def _last_by(log: Log, compact: int, wanted: int) -> int:
    """Return the newest revision with a time before `wanted`, by a scan of the times; below `compact` without one."""
    row = log.connection.execute(
        "SELECT revision FROM log WHERE revision >= ? AND CAST(substr(record, 2) AS INTEGER) BETWEEN 1 AND ? "
        "ORDER BY revision DESC LIMIT 1",
        (compact, wanted - 1),
    ).fetchone()
    return compact - 1 if row is None else int(row[0])


def _begins_recorded(log: Log) -> bool:
    """Return True if the first write of all has a record, so that nothing was stored before its time."""
    first = log.connection.execute("SELECT record FROM log WHERE revision = ?", (_EMPTY + 1,)).fetchone()
    return first is not None and first[0] is not None


def spans(log: Log, newest: int, now: float) -> Iterator[Span]:
    """Yield the spans of readable history up to a revision. Those without a known time count from `now` on."""
    compact = log.revisions()[1]
    groups = log.connection.execute(
        f"""SELECT max(n.revision), sum({ROW_OVERHEAD} + ifnull(length(p.value), 0))
            FROM log n LEFT JOIN log p ON p.revision = n.prev_revision
            WHERE n.revision > ? AND n.revision <= ? GROUP BY n.revision / {_GROUP} ORDER BY 1""",
        (compact, newest),
    ).fetchall()
    for revision, size in groups:
        (text,) = log.connection.execute("SELECT record FROM log WHERE revision = ?", (revision,)).fetchone() or (None,)
        record = decode_record(text)
        time = now if record is None else record.milliseconds / 1000
        yield Span(revision, time, time, size)
