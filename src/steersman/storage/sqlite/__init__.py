"""The storage backend in a SQLite file."""

from steersman.storage.sqlite.store import SQLiteStorage

__all__ = ["SQLiteStorage"]
