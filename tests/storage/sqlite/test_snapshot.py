"""Snapshots are of one moment, whole, and put back without anything of the future."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import sqlite3
import stat
from pathlib import Path

import pytest

from steersman.storage.interface import Compacted, StorageFormatError, StorageLocked
from steersman.storage.sqlite import SQLiteStorage, snapshot
from steersman.storage.sqlite.file import FileLock
from tests.storage.storage_model import Recorder


async def opened(path: Path) -> SQLiteStorage:
    return await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    path = tmp_path / "steersman.db"
    store = await opened(path)
    for number in range(50):
        await store.create(f"/registry/a/{number:02}", b"value")
    await store.close()
    return path


async def test_it_is_of_one_moment_while_a_server_writes(file: Path, tmp_path: Path) -> None:
    store = await opened(file)
    writing = True
    written = 0
    more = asyncio.Event()

    async def write() -> None:
        nonlocal written
        while writing:  # two keys after each other, always: none is ever without the one before
            await store.create(f"/registry/b/{written:06}/first", b"1")
            await store.create(f"/registry/b/{written:06}/second", b"2")
            written += 1
            more.set()

    writer = asyncio.create_task(write())
    for number in range(5):
        more.clear()
        await more.wait()
        await asyncio.to_thread(snapshot.save, file, tmp_path / f"snapshot-{number}")
    writing = False
    await writer
    assert written >= 5
    await store.close()
    for number in range(5):
        restored = tmp_path / f"restored-{number}.db"
        made = snapshot.restore(tmp_path / f"snapshot-{number}", restored, bump=0)
        again = await opened(restored)
        keys = [item.key for item in (await again.range("/registry/b/")).items]
        seconds = [key for key in keys if key.endswith("second")]
        assert 0 <= len(keys) - 2 * len(seconds) <= 1
        assert again.revision == made.revision == 51 + len(keys)
        await again.close()


async def test_nobody_else_may_read_it_and_its_checksum_is_that_of_sha256sum(file: Path, tmp_path: Path) -> None:
    made = snapshot.save(file, tmp_path / "snapshot")
    for name in ("snapshot", "snapshot.sha256"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert (tmp_path / "snapshot.sha256").read_text() == f"{made.digest}  snapshot\n"
    assert not (tmp_path / "snapshot.part").exists()


async def test_revisions_go_on_beyond_what_was_replaced(file: Path, tmp_path: Path) -> None:
    snapshot.save(file, tmp_path / "snapshot")
    store = await opened(file)
    for number in range(20):
        await store.create(f"/registry/later/{number}", b"value")
    newest = store.revision
    await store.close()
    made = snapshot.restore(tmp_path / "snapshot", file, bump=1000, replaces=True)
    assert made.revision == newest + 1000
    store = await opened(file)
    try:
        assert store.revision == newest + 1000
        assert [item.key for item in (await store.range("/registry/later/")).items] == []
        assert len((await store.range("/registry/a/")).items) == 50
        with pytest.raises(Compacted):
            await store.subscribe("/registry/", after_revision=newest, deliver=Recorder())
        assert (await store.create("/registry/new", b"value")).mod_revision == newest + 1001
    finally:
        await store.close()
    kept = await opened(tmp_path / "steersman.db.replaced")
    assert len((await kept.range("/registry/later/")).items) == 20
    await kept.close()


async def test_without_a_bump_all_is_as_it_was_saved(file: Path, tmp_path: Path) -> None:
    made = snapshot.save(file, tmp_path / "snapshot")
    assert snapshot.restore(tmp_path / "snapshot", tmp_path / "new.db", bump=0).revision == made.revision
    store = await opened(tmp_path / "new.db")
    recorder = Recorder()
    await store.subscribe("/registry/", after_revision=1, deliver=recorder)
    assert len(recorder.events) == 50
    await store.close()


async def test_a_restore_that_is_cut_off_leaves_what_there_was(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot.save(file, tmp_path / "snapshot")
    store = await opened(file)
    await store.create("/registry/later", b"value")
    await store.close()
    renamed = Path.rename

    def cut_off(path: Path, target: Path) -> Path:
        if path.name.endswith(".restoring"):
            raise KeyboardInterrupt
        return renamed(path, target)

    monkeypatch.setattr(Path, "rename", cut_off)
    with pytest.raises(KeyboardInterrupt):
        snapshot.restore(tmp_path / "snapshot", file, replaces=True)
    monkeypatch.undo()
    store = await opened(file)
    assert await store.get("/registry/later") is not None
    await store.close()
    snapshot.restore(tmp_path / "snapshot", file, replaces=True)
    store = await opened(file)
    assert await store.get("/registry/later") is None
    await store.close()


async def test_what_is_stored_is_not_replaced_by_its_own_snapshot(file: Path) -> None:
    store = await opened(file)
    with pytest.raises(StorageFormatError, match="a name of its own"):
        snapshot.save(file, file)
    await store.create("/registry/after", b"value")
    await store.close()
    store = await opened(file)
    assert await store.get("/registry/after") is not None
    await store.close()


def test_a_file_that_is_there_is_not_replaced_unasked(file: Path, tmp_path: Path) -> None:
    snapshot.save(file, tmp_path / "snapshot")
    before = file.read_bytes()
    with pytest.raises(StorageFormatError, match="already exists"):
        snapshot.restore(tmp_path / "snapshot", file)
    assert file.read_bytes() == before


async def test_a_file_that_a_server_has_open_is_not_replaced(file: Path, tmp_path: Path) -> None:
    store = await opened(file)
    snapshot.save(file, tmp_path / "snapshot")
    with pytest.raises(StorageLocked):
        snapshot.restore(tmp_path / "snapshot", file, replaces=True)
    await store.create("/registry/still", b"there")
    await store.close()


@pytest.mark.parametrize("damage", ["flipped", "cut", "no checksum"])
async def test_a_damaged_snapshot_is_refused(file: Path, tmp_path: Path, damage: str) -> None:
    target = tmp_path / "snapshot"
    snapshot.save(file, target)
    data = bytearray(target.read_bytes())
    if damage == "flipped":
        data[data.index(b"value")] ^= 1
    elif damage == "cut":
        del data[-5000:]
    else:
        (tmp_path / "snapshot.sha256").unlink()
    target.write_bytes(data)
    with pytest.raises(StorageFormatError, match="checksum"):
        snapshot.restore(target, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    if damage == "cut":
        with pytest.raises(StorageFormatError, match="damaged"):
            snapshot.restore(target, tmp_path / "new.db", checks_digest=False)
        assert not (tmp_path / "new.db").exists()


async def test_a_schema_that_is_no_text_is_damage(file: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.db"
    snapshot.save(file, damaged)
    data = bytearray(damaged.read_bytes())
    data[data.index(b"record TEXT") + len("record T")] = 0xE5  # a type's name, which SQLite does not read
    damaged.write_bytes(data)
    with pytest.raises(StorageFormatError, match="is damaged: the table log differs"):
        snapshot.fork(damaged, tmp_path / "fork.db", revision=1)
    with pytest.raises(StorageFormatError, match="is damaged: the table log differs"):
        snapshot.save(damaged, tmp_path / "another")
    assert not (tmp_path / "fork.db").exists()


async def test_what_is_no_storage_is_not_saved(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    with pytest.raises(StorageFormatError, match="another application"):
        snapshot.save(other, tmp_path / "snapshot")
    with pytest.raises(StorageFormatError, match="not there"):
        snapshot.save(tmp_path / "none.db", tmp_path / "snapshot")
    assert not (tmp_path / "snapshot").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON log BEGIN UPDATE log SET value = NEW.value WHERE key = '/public'; END",
        "CREATE VIEW other AS SELECT * FROM log",
        "CREATE TABLE other (x)",
        "CREATE INDEX other ON log (value)",
        "DROP INDEX log_expires",
        "ALTER TABLE log ADD COLUMN other DEFAULT 1",
        "ALTER TABLE log ADD COLUMN other AS (length(value))",
    ],
)
async def test_what_no_version_has_made_is_not_restored_nor_opened(file: Path, tmp_path: Path, statement: str) -> None:
    refused = r"has the (trigger|view|table|index) |is damaged: the (table|index) "
    snapshot.save(file, tmp_path / "snapshot")
    for path in (tmp_path / "snapshot", file):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement)
    with pytest.raises(StorageFormatError, match=refused):
        snapshot.restore(tmp_path / "snapshot", tmp_path / "restored.db", checks_digest=False)
    assert not (tmp_path / "restored.db").exists()
    with pytest.raises(StorageFormatError, match=refused):
        await opened(file)


async def test_a_lock_file_goes_with_a_storage_that_was_not_made(file: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "new").mkdir()
    with pytest.raises(StorageFormatError, match="in the future"):
        snapshot.fork(file, folder / "steersman.db", revision=10_000)
    snapshot.save(file, saved := tmp_path / "saved")
    (tmp_path / "saved.sha256").write_text("wrong")
    with pytest.raises(StorageFormatError, match="checksum"):
        snapshot.restore(saved, folder / "steersman.db")
    assert not list(folder.iterdir())
    snapshot.fork(file, folder / "steersman.db", revision=10)
    with pytest.raises(StorageFormatError, match="already exists"):
        snapshot.fork(file, folder / "steersman.db", revision=10)
    assert (folder / "steersman.db.lock").exists()


def test_a_lock_on_a_file_that_has_gone_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flock = tmp_path / "steersman.db", fcntl.flock
    removed: list[Path] = []

    def locked_late(descriptor: int, operation: int) -> None:
        """Lock the first time only after the last holder has removed the file."""
        if not removed:
            removed.append(path.with_name("steersman.db.lock"))
            removed[0].unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", locked_late)
    lock = FileLock(path)
    with pytest.raises(StorageLocked):
        FileLock(path)
    lock.release_or_remove()
    assert not list(tmp_path.iterdir())
    FileLock(path).release()
