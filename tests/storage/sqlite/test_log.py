"""Statements on the log of revisions: the row of a new object, and the present value of one key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from steersman.storage.sqlite.file import connect, create
from steersman.storage.sqlite.log import Log

KEYS = ("/absent", "/live", "/deleted", "/damaged", "/unchecked")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Yield a log with a key in each of the states that its newest row can have."""
    create(tmp_path / "store.db")
    with closing(connect(tmp_path / "store.db", cache_kib=64)) as connection:
        found = Log(connection)
        found.append([(number, key, b"old", number, 0, 0) for number, key in enumerate(KEYS[1:], 2)])
        found.append([(6, "/live", b"new", 2, 2, 0), (7, "/deleted", None, 0, 3, 0)])
        connection.execute("UPDATE log SET value = x'00' WHERE key = '/damaged'")
        connection.execute("UPDATE log SET checksum = NULL WHERE key = '/unchecked'")
        yield found


def rows(log: Log, key: str) -> int:
    (count,) = log.connection.execute("SELECT count(*) FROM log WHERE key = ?", (key,)).fetchone()
    return int(count)


@pytest.mark.parametrize("key", KEYS)
def test_one_key_is_read_as_among_others(log: Log, key: str) -> None:
    held, damaged = log.current([key])
    among_others, damaged_ones = log.current(KEYS)
    assert held.get(key) == among_others.get(key)
    assert str(damaged.get(key)) == str(damaged_ones.get(key))


@pytest.mark.parametrize("record", [None, "[1.5]"])
@pytest.mark.parametrize(
    ("key", "is_free"), [("/absent", True), ("/deleted", True), ("/live", False), ("/damaged", False)]
)
def test_a_new_object_is_written_only_where_its_key_has_no_value(
    log: Log, key: str, is_free: bool, record: str | None
) -> None:
    before = rows(log, key)
    assert log.append_new((8, key, b"made", 8, 0, 0), record) is is_free
    assert rows(log, key) == before + is_free
    if is_free:
        held, damaged = log.current([key])
        assert (held[key].value, held[key].create_revision, held[key].mod_revision, damaged) == (b"made", 8, 8, {})
        assert log.connection.execute("SELECT record FROM log WHERE revision = 8").fetchone() == (record,)
    assert not log.connection.in_transaction


def test_a_new_object_is_written_without_a_temporary_table(log: Log) -> None:
    executed: list[str] = []
    log.connection.set_trace_callback(executed.append)
    assert log.append_new((8, "/absent", b"made", 8, 0, 0))
    log.connection.set_trace_callback(None)
    steps = [step[1] for step in log.connection.execute(f"EXPLAIN {executed[-1]}")]
    assert "Insert" in steps
    assert "OpenEphemeral" not in steps


def test_the_newest_value_of_a_key_is_read(log: Log) -> None:
    held, _ = log.current(["/live"])
    assert (held["/live"].value, held["/live"].create_revision, held["/live"].mod_revision) == (b"new", 2, 6)


def test_a_damaged_value_is_told(log: Log) -> None:
    held, damaged = log.current(["/damaged"])
    assert held == {}
    assert "/damaged" in str(damaged["/damaged"])
