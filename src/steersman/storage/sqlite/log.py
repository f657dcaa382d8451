"""SQL statements on the log of revisions.

sqlite3 releases and reacquires the interpreter lock for every row that it returns or writes. Each reacquisition may
wait for a whole switch interval (5 ms) while the event loop is busy. So each statement here handles many rows and
returns them as one: numbers joined to one text, values joined to one blob. That makes a batch many times faster beside
a busy event loop, and somewhat faster beside an idle one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from steersman.storage.interface import Compacted, Event, KeyValue, StorageDamaged
from steersman.storage.keys import after
from steersman.storage.rewind import bounds
from steersman.storage.sqlite.checksums import row_checksum

ROWS_PER_STATEMENT: Final = 64
"""Rows of the largest writing statement; each number of rows has a prepared statement of its own."""
FIRST_PAGE: Final = 64
_LAST_PAGE: Final = 256
"""Rows of the largest reading statement: its result is one piece, even if each row has some megabytes."""
_PAGE_BYTES: Final = 1 << 20
"""Bytes that a reading statement should return, judging by the previous one."""

Row = tuple[int, str, bytes | None, int, int, int]
"""revision, key, value, create_revision, prev_revision, expires"""

_NO_END: Final = b""
"""Greater than any text, as SQLite sorts blobs after texts."""
_NO_CHECKSUM: Final = -1
"""A placeholder for the checksum of rows of a version without checksums."""


class Log:
    """The statements on one connection. Every method blocks and may raise sqlite3.Error.

    Every row that is read is verified: a damaged one raises StorageDamaged.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._joined_is_exact = self._joins_exactly(connection)
        self._current: dict[int, str] = {}
        """Statements of `current` by the number of keys, so that their text is not made for each batch."""
        self._inserts: dict[tuple[int, bool], str] = {}
        """The statements of `append` by the number of rows, without and with records."""

    @staticmethod
    def _joins_exactly(connection: sqlite3.Connection) -> bool:
        """Return True if group_concat keeps NUL bytes; SQLite before 3.40 may truncate its result at the first one."""
        found = connection.execute("SELECT CAST(group_concat(column1, '') AS BLOB) FROM (VALUES (x'4100'), (x'42'))")
        return bool(found.fetchone()[0] == b"A\0B")

    def _joined(self, column: str) -> str:
        """Return the SQL expression that joins all values of a column."""
        if self._joined_is_exact:
            return f"CAST(group_concat({column}, '') AS BLOB)"
        return f"group_concat(hex({column}), '')"

    def _bytes(self, joined: bytes | str | None) -> bytes:
        if joined is None:
            return b""
        return bytes.fromhex(joined) if isinstance(joined, str) else joined

    def revisions(self) -> tuple[int, int, int]:
        """Return the newest revision, the oldest readable one, and the revision up to which rows are removed."""
        newest, compact, compacted = self.connection.execute(
            "SELECT ifnull((SELECT max(revision) FROM log), 0), compact_revision, compacted_revision FROM meta"
        ).fetchone()
        return max(newest, compact, 1), compact, compacted

    def current(self, keys: Sequence[str]) -> tuple[dict[str, KeyValue], dict[str, StorageDamaged]]:
        """Return the present values of keys that have one, and the errors of damaged ones."""
        if len(keys) == 1:
            return self._current_of(keys[0])
        found: dict[str, KeyValue] = {}
        damaged: dict[str, StorageDamaged] = {}
        for index in range(0, len(keys), ROWS_PER_STATEMENT):
            part = keys[index : index + ROWS_PER_STATEMENT]
            statement = self._current.get(len(part)) or self._statement_of_current(len(part))
            numbers, values = self.connection.execute(statement, part).fetchone()
            if numbers:
                values, offset = self._bytes(values), 0
                for number, revision, created, replaced, expires, checksum, length in _rows(numbers, 7):
                    key = part[number]
                    value = values[offset : offset + length]
                    offset += length
                    if checksum in (
                        _NO_CHECKSUM,
                        row_checksum(revision, key.encode(), value, created, replaced, expires),
                    ):
                        found[key] = KeyValue(key, value, created, revision)
                    else:
                        damaged[key] = _damaged(key, revision)
        return found, damaged

    def _current_of(self, key: str) -> tuple[dict[str, KeyValue], dict[str, StorageDamaged]]:
        """Return what `current` returns for one key, without joined texts: most batches have one write."""
        found = self.connection.execute(
            """SELECT revision, create_revision, prev_revision, expires, checksum, value FROM log
               WHERE key = ? ORDER BY revision DESC LIMIT 1""",
            (key,),
        ).fetchone()
        if found is None or (value := found[5]) is None:
            return {}, {}
        revision, created, replaced, expires, checksum, _ = found
        if checksum not in (None, row_checksum(revision, key.encode(), value, created, replaced, expires)):
            return {}, {key: _damaged(key, revision)}
        return {key: KeyValue(key, value, created, revision)}, {}

    def _statement_of_current(self, count: int) -> str:
        wanted = ", ".join([f"({number}, ?)" for number in range(count)])
        self._current[count] = statement = f"""
            SELECT group_concat(w.column1 || ' ' || l.revision || ' ' || l.create_revision || ' '
                || l.prev_revision || ' ' || l.expires || ' ' || ifnull(l.checksum, {_NO_CHECKSUM}) || ' '
                || length(l.value), ' '), {self._joined("l.value")}
            FROM (VALUES {wanted}) w CROSS JOIN log l
            ON l.revision = (SELECT max(revision) FROM log WHERE key = w.column2)
            WHERE l.value IS NOT NULL"""
        return statement

    def append(self, rows: Sequence[Row], records: Sequence[str] | None = None) -> None:
        """Commit rows, all or none, each with its record if there are any."""
        if len(rows) <= ROWS_PER_STATEMENT:
            self._insert(rows, records)
            return
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            for index in range(0, len(rows), ROWS_PER_STATEMENT):
                end = index + ROWS_PER_STATEMENT
                self._insert(rows[index:end], records and records[index:end])
            self.connection.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def append_new(self, row: Row, record: str | None = None) -> bool:
        """Commit the row of a new object, in one statement with the search for its key.

        Return False, and write nothing, if the key has a value, damaged or not.
        """
        columns: tuple[object, ...] = with_checksum(row)
        if record is None:
            return self.connection.execute(_INSERTION_OF_NEW, columns).rowcount == 1
        return self.connection.execute(_INSERTION_OF_NEW_WITH_RECORD, (*columns, record)).rowcount == 1

    def _insert(self, rows: Sequence[Row], records: Sequence[str] | None) -> None:
        form = (len(rows), records is not None)
        statement = self._inserts.get(form)
        if statement is None:
            self._inserts[form] = statement = insertion(len(rows), with_records=records is not None)
        columns: list[object] = []
        for number, row in enumerate(rows):
            columns += with_checksum(row)
            if records is not None:
                columns.append(records[number])
        self.connection.execute(statement, columns)

    def rollback(self) -> None:
        """Roll back a failed transaction, unless SQLite has done so itself."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def get(self, key: str, revision: int) -> KeyValue | None:
        """Return the key's value at `revision`, None without one. Raises Compacted."""
        compact, found, created, replaced, expires, checksum, value = self.connection.execute(
            """SELECT m.compact_revision, l.revision, l.create_revision, l.prev_revision, l.expires, l.checksum, l.value
               FROM meta m LEFT JOIN log l
               ON l.revision = (SELECT max(revision) FROM log WHERE key = ? AND revision <= ?)""",
            (key, revision),
        ).fetchone()
        if revision < compact:
            raise Compacted(compact)
        if found is None:
            return None
        if checksum not in (None, row_checksum(found, key.encode(), value, created, replaced, expires)):
            raise _damaged(key, found)
        return None if value is None else KeyValue(key, value, created, found)

    _LIVE: Final = """FROM log l WHERE key >= ? AND key < ? AND revision <= ? AND value IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM log n WHERE n.key = l.key AND n.revision > l.revision AND n.revision <= ?)"""

    def range(self, prefix: str, start: str, limit: int, revision: int) -> tuple[list[KeyValue], bool]:
        """Return up to `limit` (0: all) values under `prefix` from `start` on, and True if more follow. Raises
        Compacted.

        The range is read page by page: only compaction changes the state of a revision, and every page checks for it.
        """
        low, high = bounds(prefix, start)
        found: list[KeyValue] = []
        page = FIRST_PAGE
        while True:
            wanted = min(page, limit + 1 - len(found)) if limit else page
            items, size = self._range_page(low, high, revision, wanted)
            found += items
            if limit and len(found) > limit:
                return found[:limit], True
            if len(items) < wanted:
                return found, False
            low = after(items[-1].key)
            page = next_page(page, size)

    def _range_page(self, low: str, high: str | None, revision: int, limit: int) -> tuple[list[KeyValue], int]:
        compact, numbers, keys, values = self.connection.execute(
            f"""SELECT (SELECT compact_revision FROM meta), group_concat(
                    revision || ' ' || create_revision || ' ' || prev_revision || ' ' || expires || ' '
                    || ifnull(checksum, {_NO_CHECKSUM}) || ' ' || length(CAST(key AS BLOB))
                    || ' ' || length(value), ' '), {self._joined("key")}, {self._joined("value")}
                FROM (SELECT revision, create_revision, prev_revision, expires, checksum, key, value {self._LIVE}
                      ORDER BY key LIMIT ?)""",
            (low, _NO_END if high is None else high, revision, revision, limit),
        ).fetchone()
        if revision < compact:
            raise Compacted(compact)
        keys, values = self._bytes(keys), self._bytes(values)
        items = []
        key_offset = offset = 0
        for found, created, replaced, expires, checksum, key_length, length in _rows(numbers, 7):
            key = keys[key_offset : key_offset + key_length]
            value = values[offset : offset + length]
            items.append(
                KeyValue(_checked(found, key, value, created, replaced, expires, checksum), value, created, found)
            )
            key_offset += key_length
            offset += length
        _check_ends(key_offset, keys, offset, values)
        return items, len(values)

    def count(self, prefix: str, start: str, revision: int) -> int:
        """Return the number of keys under `prefix` from `start` on. Raises Compacted."""
        low, high = bounds(prefix, start)
        compact, total = self.connection.execute(
            f"SELECT (SELECT compact_revision FROM meta), (SELECT count(*) {self._LIVE})",
            (low, _NO_END if high is None else high, revision, revision),
        ).fetchone()
        if revision < compact:
            raise Compacted(compact)
        return int(total)

    def events(self, prefix: str, after_revision: int, last: int, limit: int) -> tuple[list[Event], int]:
        """Return at most `limit` events under `prefix` after `after_revision`, up to `last`, and their bytes. Raises
        Compacted.
        """
        low, high = bounds(prefix, "")
        # The plus keeps SQLite from using the index of keys, because the rows are needed in order of revisions.
        compact, numbers, keys, values, previous_values = self.connection.execute(
            f"""SELECT (SELECT compact_revision FROM meta), group_concat(
                    revision || ' ' || create_revision || ' ' || prev_revision || ' ' || expires || ' '
                    || ifnull(checksum, {_NO_CHECKSUM}) || ' ' || length(CAST(key AS BLOB)) || ' '
                    || ifnull(length(value), -1) || ' ' || ifnull(p_revision, 0) || ' ' || ifnull(p_create, 0) || ' '
                    || ifnull(p_prev, 0) || ' ' || ifnull(p_expires, 0) || ' ' || ifnull(p_checksum, {_NO_CHECKSUM})
                    || ' ' || ifnull(length(p_value), -1), ' '),
                {self._joined("key")}, {self._joined("value")}, {self._joined("p_value")}
                FROM (SELECT l.revision, l.create_revision, l.prev_revision, l.expires, l.checksum, l.key, l.value,
                             p.revision AS p_revision, p.create_revision AS p_create, p.prev_revision AS p_prev,
                             p.expires AS p_expires, p.checksum AS p_checksum, p.value AS p_value
                      FROM log l LEFT JOIN log p ON p.revision = l.prev_revision
                      WHERE l.revision > ? AND l.revision <= ? AND +l.key >= ? AND +l.key < ?
                      ORDER BY l.revision LIMIT ?)""",
            (after_revision, last, low, _NO_END if high is None else high, limit),
        ).fetchone()
        if after_revision < compact:
            raise Compacted(compact)
        keys, values, previous_values = self._bytes(keys), self._bytes(values), self._bytes(previous_values)
        return _events(numbers, keys, values, previous_values), len(values) + len(previous_values)

    def check_rows(self, after_revision: int, limit: int) -> tuple[int, int]:
        """Verify the next `limit` rows and their entries in the index of keys.

        Returns the last of their revisions, 0 if there was none, and the bytes of their values. Raises StorageDamaged.
        """
        numbers, keys, values, unindexed = self.connection.execute(
            f"""SELECT group_concat(revision || ' ' || create_revision || ' ' || prev_revision || ' ' || expires || ' '
                    || ifnull(checksum, {_NO_CHECKSUM}) || ' ' || length(CAST(key AS BLOB)) || ' '
                    || ifnull(length(value), -1), ' '), {self._joined("key")}, {self._joined("value")},
                    min(CASE WHEN EXISTS (SELECT 1 FROM log i INDEXED BY log_key WHERE i.key = r.key
                                          AND i.revision = r.revision) THEN NULL ELSE revision END)
                FROM (SELECT * FROM log NOT INDEXED WHERE revision > ? ORDER BY revision LIMIT ?) r""",
            (after_revision, limit),
        ).fetchone()
        keys, values = self._bytes(keys), self._bytes(values)
        last = key_offset = offset = 0
        for revision, created, replaced, expires, checksum, key_length, length in _rows(numbers, 7):
            key = keys[key_offset : key_offset + key_length]
            value = values[offset : offset + length] if length >= 0 else None
            _checked(revision, key, value, created, replaced, expires, checksum)
            last = revision
            key_offset += key_length
            offset += max(length, 0)
        _check_ends(key_offset, keys, offset, values)
        if unindexed is not None:
            raise StorageDamaged(f"revision {unindexed} is not in the index of keys: the file is damaged")
        return last, len(values)

    def check_counts(self) -> None:
        """Raise StorageDamaged if the index of keys has a different number of entries than rows."""
        rows, entries = self.connection.execute(
            "SELECT (SELECT count(*) FROM log NOT INDEXED), "
            "(SELECT count(*) FROM log INDEXED BY log_key WHERE key >= '')"
        ).fetchone()
        if rows != entries:
            raise StorageDamaged(f"the index of keys has {entries} entries for {rows} rows: the file is damaged")

    def check_all(self) -> None:
        """Verify every row and its entry in the index of keys. Raises StorageDamaged."""
        at, page = 0, FIRST_PAGE
        while True:
            last, size = self.check_rows(at, page)
            if not last:
                return self.check_counts()
            at, page = last, next_page(page, size)

    def expired(self, now: int, limit: int) -> list[tuple[str, int]]:
        """Return up to `limit` keys whose lease has expired by `now` (Unix seconds), and their revisions."""
        return self.connection.execute(
            """SELECT key, revision FROM log l WHERE expires > 0 AND expires <= ? AND value IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM log n WHERE n.key = l.key AND n.revision > l.revision) LIMIT ?""",
            (now, limit),
        ).fetchall()


def next_page(page: int, size: int) -> int:
    """Return the number of rows for the next statement, if `page` rows had `size` bytes."""
    if size > 4 * _PAGE_BYTES:
        return max(page // 4, 1)
    return min(page * 2, _LAST_PAGE) if size < _PAGE_BYTES else page


def _events(numbers: str | None, keys: bytes, values: bytes, previous_values: bytes) -> list[Event]:
    """Return the events in the joined columns of `Log.events`. Raises StorageDamaged."""
    events = []
    key_offset = offset = previous_offset = 0
    for (
        revision,
        created,
        replaced,
        expires,
        checksum,
        key_length,
        length,
        p_revision,
        p_created,
        p_replaced,
        p_expires,
        p_checksum,
        p_length,
    ) in _rows(numbers, 13):
        key_bytes = keys[key_offset : key_offset + key_length]
        key_offset += key_length
        current = previous = None
        value = values[offset : offset + length] if length >= 0 else None
        key = _checked(revision, key_bytes, value, created, replaced, expires, checksum)
        if value is not None:
            current = KeyValue(key, value, created, revision)
            offset += length
        if p_length >= 0:
            value = previous_values[previous_offset : previous_offset + p_length]
            _checked(p_revision, key_bytes, value, p_created, p_replaced, p_expires, p_checksum)
            previous = KeyValue(key, value, p_created, p_revision)
            previous_offset += p_length
        events.append(Event(revision, key, current, previous))
    _check_ends(key_offset, keys, offset, values)
    return events


def insertion(count: int, *, with_records: bool = False) -> str:
    """Return the statement that inserts `count` rows with checksums, each with its record if `with_records`."""
    columns = "revision, key, value, create_revision, prev_revision, expires, checksum"
    values = "(?, ?, ?, ?, ?, ?, ?, ?)" if with_records else "(?, ?, ?, ?, ?, ?, ?)"
    return f"INSERT INTO log ({columns}{', record' if with_records else ''}) VALUES {', '.join([values] * count)}"


def _insertion_of_new(*, with_record: bool) -> str:
    """Return the statement that inserts one row with its checksum unless its key has a value.

    The key is NULL then, which the table refuses. An `INSERT ... SELECT ... WHERE` says the same, but as it reads the
    table that it writes, SQLite first copies the row to a temporary table, which costs a third of the statement.
    """
    columns, _, values = insertion(1, with_records=with_record).partition("VALUES")
    new_key = "CASE WHEN (SELECT value FROM log WHERE key = ?2 ORDER BY revision DESC LIMIT 1) IS NULL THEN ?2 END"
    parameters = [f"?{number}" for number in range(1, values.count("?") + 1)]
    parameters[1] = new_key
    return f"{columns.replace('INSERT', 'INSERT OR IGNORE')}VALUES ({', '.join(parameters)})"


_INSERTION_OF_NEW: Final = _insertion_of_new(with_record=False)
_INSERTION_OF_NEW_WITH_RECORD: Final = _insertion_of_new(with_record=True)


def with_checksum(row: Row) -> tuple[int, str, bytes | None, int, int, int, int]:
    """Return the row with its checksum, as it is inserted."""
    return (*row, row_checksum(row[0], row[1].encode(), *row[2:]))


def check_row(row: tuple[int, str, bytes | None, int, int, int, int | None]) -> None:
    """Raise StorageDamaged if a row does not match its checksum."""
    if row[6] is not None and with_checksum(row[:6])[6] != row[6]:
        raise _damaged(row[1], row[0])


def _rows(numbers: str | None, columns: int) -> Iterator[tuple[int, ...]]:
    """Return the rows in a text of numbers. Raises StorageDamaged for malformed or truncated text."""
    try:
        fields = list(map(int, numbers.split())) if numbers else []
    except ValueError:
        fields = [0]
    if len(fields) % columns:
        raise StorageDamaged("a row is not what was written: the file is damaged")
    return zip(*[iter(fields)] * columns, strict=True)


def _checked(
    revision: int, key: bytes, value: bytes | None, created: int, replaced: int, expires: int, checksum: int
) -> str:
    """Return the key of a row as text. Raises StorageDamaged if the row does not match its checksum, unless it has
    none.
    """
    if checksum not in (_NO_CHECKSUM, row_checksum(revision, key, value, created, replaced, expires)):
        raise _damaged(key.decode(errors="replace"), revision)
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise _damaged(key.decode(errors="replace"), revision) from None


def _check_ends(key_offset: int, keys: bytes, offset: int, values: bytes) -> None:
    """Raise StorageDamaged if some rows have no numbers, as happens if a NULL was written into one."""
    if key_offset != len(keys) or offset != len(values):
        raise StorageDamaged("a row is not what was written: the file is damaged")


def _damaged(key: str, revision: int) -> StorageDamaged:
    return StorageDamaged(f"{key!r} at revision {revision} is not what was written: the file is damaged")
