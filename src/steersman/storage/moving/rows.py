"""What a SQLite file holds now, and a digest of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from steersman.storage.sqlite.log import check_row

ROWS_AT_ONCE: Final = 64
"""A value has 3 MiB at most: so many are in memory at once, and under way to etcd."""


@dataclass(slots=True)
class Row:
    """A key and its value; `expires` is in Unix seconds, 0 for never."""

    key: str
    value: bytes
    create_revision: int
    revision: int
    expires: int


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved: how many keys, the bytes of their values, and the newest revision there is of them now."""

    keys: int
    size: int
    revision: int


class Digest:
    """Of keys and values, in the order of the keys."""

    def __init__(self) -> None:
        self._sum = sha256()
        self.keys = 0
        self.size = 0

    def add(self, key: str, value: bytes) -> None:
        """Takes the next one."""
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
    """How many keys there are. Raises sqlite3.Error."""
    return int(connection.execute(f"SELECT count(*) {_LIVE}").fetchone()[0])


def pages(connection: sqlite3.Connection) -> Iterator[list[Row]]:
    """All there is, in the order of the keys, some at a time. Raises sqlite3.Error, StorageDamaged."""
    found = connection.execute(
        f"SELECT revision, key, value, create_revision, prev_revision, expires, checksum {_LIVE} ORDER BY key"
    )
    while rows := found.fetchmany(ROWS_AT_ONCE):
        for row in rows:
            check_row(row)
        yield [Row(key, value, created, revision, expires) for revision, key, value, created, _, expires, _ in rows]


def digest(connection: sqlite3.Connection) -> Digest:
    """Of all there is. Raises sqlite3.Error."""
    made = Digest()
    for page in pages(connection):
        for row in page:
            made.add(row.key, row.value)
    return made
