"""The current content of a SQLite file, and a digest of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from steersman.storage.sqlite.log import check_row

ROWS_AT_ONCE: Final = 64
"""The most values in memory, or on their way to etcd, at once. A value has at most 3 MiB."""


@dataclass(slots=True)
class Row:
    """A key and its value. `expires` is in Unix seconds, 0 for never."""

    key: str
    value: bytes
    create_revision: int
    revision: int
    expires: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a move: the number of keys, the bytes of their values, and the newest revision at the target."""

    keys: int
    size: int
    revision: int


class Digest:
    """A digest of keys and values, in the order of the keys."""

    def __init__(self) -> None:
        self._sum = sha256()
        self.keys = 0
        self.size = 0

    def add(self, key: str, value: bytes) -> None:
        """Add the next key."""
        name = key.encode()
        self._sum.update(b"%d %d " % (len(name), len(value)) + name)
        self._sum.update(value)
        self.keys += 1
        self.size += len(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and self._sum.digest() == other._sum.digest()

    __hash__ = None  # type: ignore[assignment]  # it changes


_LIVE: Final = """FROM log l WHERE value IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM log n WHERE n.key = l.key AND n.revision > l.revision)"""


def count(connection: sqlite3.Connection) -> int:
    """Return the number of keys. Raises sqlite3.Error."""
    return int(connection.execute(f"SELECT count(*) {_LIVE}").fetchone()[0])


def pages(connection: sqlite3.Connection) -> Iterator[list[Row]]:
    """Yield all rows in pages, in the order of the keys. Raises sqlite3.Error and StorageDamaged."""
    found = connection.execute(
        f"SELECT revision, key, value, create_revision, prev_revision, expires, checksum {_LIVE} ORDER BY key"
    )
    while rows := found.fetchmany(ROWS_AT_ONCE):
        for row in rows:
            check_row(row)
        yield [Row(key, value, created, revision, expires) for revision, key, value, created, _, expires, _ in rows]


def digest(connection: sqlite3.Connection) -> Digest:
    """Return the digest of everything. Raises sqlite3.Error."""
    made = Digest()
    for page in pages(connection):
        for row in page:
            made.add(row.key, row.value)
    return made
