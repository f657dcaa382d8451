"""Damage to the file or its log is found: nothing that was acknowledged is lost, or shown otherwise, without a word."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.storage.interface import StorageDamaged, StorageFormatError, StorageUnavailable
from steersman.storage.sqlite import SQLiteStorage, file, salvage, snapshot, wal

WRITES = 40
_HEADER, _FRAME_HEADER, _PAGE = 32, 24, 4096
_STEP = _FRAME_HEADER + _PAGE

Held = dict[str, tuple[int, bytes]]
"""By key: revision and value."""


async def opened(path: Path, *, durable: bool = True) -> SQLiteStorage:
    return await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0, durable=durable)


async def write(store: SQLiteStorage, first: int, count: int, held: Held) -> None:
    chance = random.Random(first)
    for number in range(first, first + count):
        key = f"/registry/configmaps/default/c{number}"
        value = chance.randbytes(chance.choice((30, 700, 9000)))
        held[key] = ((await store.create(key, value)).mod_revision, value)


async def shown(store: SQLiteStorage) -> Held:
    return {each.key: (each.mod_revision, each.value) for each in (await store.range("/")).items}


def copy(path: Path, folder: Path) -> Path:
    """Copies a file, its log and its index, as they are when the process is killed that has them open."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for each in path.parent.glob(f"{path.name}*"):
        if not each.name.endswith(".lock"):
            shutil.copy(each, folder)
    return folder / path.name


class Crashed:
    """The state left by a process that was killed: `before` its last write, and after it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.held: Held = {}
        self.before = folder / "before" / "store.db"
        self.after = folder / "after" / "store.db"

    async def make(self) -> None:
        path = self._folder / "store.db"
        store = await opened(path)
        await write(store, 0, WRITES - 1, self.held)
        copy(path, self.before.parent)
        await write(store, WRITES - 1, 1, self.held)
        copy(path, self.after.parent)
        await store.close()

    def again(self) -> Path:
        """A copy to spoil."""
        return copy(self.after, self._folder / "spoilt")


@pytest.fixture
async def crashed(tmp_path: Path) -> Crashed:
    made = Crashed(tmp_path)
    await made.make()
    return made


def flip(path: Path, at: int, bits: int = 1) -> None:
    with path.open("r+b") as spoilt:
        spoilt.seek(at)
        byte = spoilt.read(1)[0]
        spoilt.seek(at)
        spoilt.write(bytes([byte ^ bits]))


def contents(path: Path) -> dict[str, bytes]:
    found = {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}
    return {name: data for name, data in found.items() if data and not name.endswith(".lock")}


def frames(path: Path) -> int:
    return (wal.log_of(path).stat().st_size - _HEADER) // _STEP


async def refused(path: Path, match: str = "steersman storage check") -> None:
    """It is refused as often as it is tried, and left as it was."""
    before = contents(path)
    for _ in range(2):
        with pytest.raises(StorageFormatError, match=match):
            await opened(path)
    assert contents(path) == before


# The log


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("at", [0, 9, 17, 22, 27])
async def test_a_damaged_header_of_the_log_is_found(crashed: Crashed, at: int, has_index: bool) -> None:
    path = crashed.again()
    flip(wal.log_of(path), at)
    if not has_index:
        wal.index_of(path).unlink()
    await refused(path)


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("at", [3, 7, 10, 14, 18, 23, 24, 2000, _STEP - 1])
async def test_a_damaged_frame_with_commits_behind_it_is_found(crashed: Crashed, at: int, has_index: bool) -> None:
    path = crashed.again()
    flip(wal.log_of(path), _HEADER + frames(path) // 2 * _STEP + at)
    if not has_index:
        wal.index_of(path).unlink()
    await refused(path)


@pytest.mark.parametrize("at", [3, 7, 10, 14, 18, 23, 24, 2000, _STEP - 1])
async def test_a_damaged_last_commit_is_found_after_a_kill(crashed: Crashed, at: int) -> None:
    path = crashed.again()
    flip(wal.log_of(path), _HEADER + (frames(path) - 1) * _STEP + at)
    await refused(path)


async def test_a_log_that_was_cut_or_removed_is_noticed(crashed: Crashed) -> None:
    for size in (wal.log_of(crashed.after).stat().st_size // 2, _HEADER, 0):
        path = crashed.again()
        with wal.log_of(path).open("r+b") as log:
            log.truncate(size)
        await refused(path)
    path = crashed.again()
    wal.log_of(path).unlink()
    await refused(path)


async def test_whatever_bit_of_the_log_turns_nothing_is_lost_without_a_word(crashed: Crashed) -> None:
    chance = random.Random(7)
    for _ in range(40):
        path = crashed.again()
        at = chance.randrange(wal.log_of(path).stat().st_size)
        flip(wal.log_of(path), at, 1 << chance.randrange(8))
        try:
            store = await opened(path)
        except StorageFormatError:
            continue
        assert await shown(store) == crashed.held, at
        await store.close()


async def test_a_last_commit_that_a_power_cut_has_torn_is_left_out(crashed: Crashed) -> None:
    chance = random.Random(3)
    synced = wal.log_of(crashed.before).read_bytes()
    written = wal.log_of(crashed.after).read_bytes()
    for number in range(30):
        path = crashed.again()
        torn = bytearray(written)
        sectors = range(len(synced) // 512, -(-len(written) // 512))
        lost = [each for each in sectors if chance.random() < 0.5] or [sectors[-1]]
        for sector in lost:  # the disk has not written them
            start = max(sector * 512, len(synced))
            torn[start : (sector + 1) * 512] = bytes(len(torn[start : (sector + 1) * 512]))
        wal.log_of(path).write_bytes(torn)
        if number % 2:
            wal.index_of(path).unlink()
        else:
            shutil.copy(wal.index_of(crashed.before), wal.index_of(path))
        store = await opened(path)
        assert frames(path) <= 0, "what is left of it would lie behind later commits"
        assert (await shown(store)).items() >= dict(list(crashed.held.items())[:-1]).items()
        await store.close()


async def test_a_log_that_ends_anywhere_in_its_last_commit_is_read_up_to_there(crashed: Crashed) -> None:
    synced, written = (wal.log_of(each).stat().st_size for each in (crashed.before, crashed.after))
    for size in (synced, synced + 10, synced + _FRAME_HEADER, synced + _STEP, written - 1):
        path = crashed.again()
        with wal.log_of(path).open("r+b") as log:
            log.truncate(size)
        shutil.copy(wal.index_of(crashed.before), wal.index_of(path))
        store = await opened(path)
        assert len(await shown(store)) == WRITES - 1
        await store.close()


async def test_frames_of_an_earlier_turn_of_the_log_are_no_damage(tmp_path: Path) -> None:
    held: Held = {}
    store = await opened(tmp_path / "store.db")
    await write(store, 0, 30, held)
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as other:
        other.execute("PRAGMA wal_checkpoint(RESTART)")
    await write(store, 30, 2, held)
    path = copy(tmp_path / "store.db", tmp_path / "copy")
    await store.close()
    with wal.log_of(path).open("rb") as log:
        assert len({each.salts for each in wal.frames(log.fileno())}) == 2
    again = await opened(path)
    assert await shown(again) == held
    await again.close()


async def test_a_file_that_is_not_durable_is_opened_with_what_it_has(
    crashed: Crashed, caplog: pytest.LogCaptureFixture
) -> None:
    path = crashed.again()
    flip(wal.log_of(path), _HEADER + frames(path) // 2 * _STEP + 100)
    store = await opened(path, durable=False)
    assert 0 < len(await shown(store)) < WRITES
    assert "after a power cut with --unsafe-no-fsync" in caplog.text
    await store.close()


# The file


@pytest.fixture
async def sound(tmp_path: Path) -> tuple[Path, Held]:
    held: Held = {}
    path = tmp_path / "sound" / "store.db"
    path.parent.mkdir()
    store = await opened(path)
    await write(store, 0, WRITES, held)
    await store.close()
    return path, held


def place_of(path: Path, value: bytes) -> int:
    return path.read_bytes().index(value[:20])


async def test_a_value_that_was_overwritten_is_found_at_the_start(sound: tuple[Path, Held]) -> None:
    path, held = sound
    key, (_, value) = next(each for each in held.items() if len(each[1][1]) < 100)
    flip(path, place_of(path, value))
    await refused(path, f"'{key}' at revision .* is not what was written")


async def test_whatever_byte_of_the_file_changes_nothing_else_is_shown(sound: tuple[Path, Held]) -> None:
    path, held = sound
    chance = random.Random(5)
    for _ in range(60):
        spoilt = copy(path, path.parent.parent / "spoilt")
        at = chance.randrange(spoilt.stat().st_size)
        flip(spoilt, at, chance.randrange(1, 256))
        try:
            store = await opened(spoilt)
        except (StorageFormatError, StorageUnavailable):
            continue
        assert await shown(store) == held, at
        await store.close()


async def test_in_a_large_file_each_value_is_checked_when_it_is_read(
    sound: tuple[Path, Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, held = sound
    key, (revision, value) = next(each for each in held.items() if len(each[1][1]) < 100)
    flip(path, place_of(path, value))
    monkeypatch.setattr(file, "FULL_CHECK_LIMIT", 0)
    monkeypatch.setattr(SQLiteStorage, "check", lambda _: asyncio.sleep(0))
    store = await opened(path)
    other = next(each for each in held if each != key)
    assert (await store.get(other)) is not None
    damaged = f"'{key}' at revision {revision} is not what was written"
    with pytest.raises(StorageDamaged, match=damaged):
        await store.get(key)
    with pytest.raises(StorageDamaged, match=damaged):
        await store.range("/")
    with pytest.raises(StorageDamaged, match=damaged):
        await store.subscribe("/", after_revision=1, deliver=lambda _: None)
    results = await asyncio.gather(
        store.update(key, b"new", expected_revision=revision), store.create("/new", b"1"), return_exceptions=True
    )
    assert isinstance(results[0], StorageDamaged)
    assert not isinstance(results[1], BaseException)
    await store.close()


@pytest.mark.parametrize("which", [0, 1])
async def test_a_large_file_is_checked_while_it_is_served_and_takes_no_writes_then(
    sound: tuple[Path, Held], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, which: int
) -> None:
    path, held = sound
    key = list(held)[20].encode()
    data = path.read_bytes()
    places = [data.index(key), data.rindex(key)]  # in its row, and in the index of keys
    assert places[0] != places[1]
    flip(path, places[which] + 12)
    monkeypatch.setattr(file, "FULL_CHECK_LIMIT", 0)
    store = await opened(path)
    async with asyncio.timeout(5):
        while not store.refusal:  # noqa: ASYNC110  # turns of the loop are what is waited for
            await asyncio.sleep(0)
    assert "steersman storage check" in caplog.text
    with pytest.raises(StorageUnavailable, match="the file is damaged"):
        await store.create("/new", b"1")
    await store.close()


# Files of the version before


def without_checksums(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE log DROP COLUMN record")
        connection.execute("ALTER TABLE log DROP COLUMN checksum")
        connection.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize("is_large", [False, True])
async def test_a_file_without_checksums_is_opened_and_gets_some(
    sound: tuple[Path, Held], monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    path, held = sound
    without_checksums(path)
    if is_large:
        monkeypatch.setattr(file, "FULL_CHECK_LIMIT", 0)
        monkeypatch.setattr(file, "FILLED_LIMIT", 0)
    store = await opened(path)
    assert await shown(store) == held
    await store.check()
    await write(store, WRITES, 5, held)
    await store.close()
    found = salvage.examine(path)
    assert (found.rows, found.unchecked) == (WRITES + 5, WRITES if is_large else 0)
    store = await opened(path)
    assert await shown(store) == held
    await store.close()


async def test_a_snapshot_without_checksums_is_restored_with_them(sound: tuple[Path, Held], tmp_path: Path) -> None:
    path, held = sound
    without_checksums(path)
    snapshot.save(path, tmp_path / "snapshot")
    restored = tmp_path / "restored.db"
    snapshot.restore(tmp_path / "snapshot", restored, bump=0)
    assert salvage.examine(restored).unchecked == 0
    store = await opened(restored)
    assert await shown(store) == held
    await store.close()


# The way on


async def test_all_that_is_sound_is_salvaged(crashed: Crashed) -> None:
    """A page in the middle of the log is lost: pages of later commits contain its content."""
    path = crashed.again()
    flip(wal.log_of(path), _HEADER + frames(path) // 2 * _STEP + 100)
    before = contents(path)
    newest = max(revision for revision, _ in crashed.held.values())
    made = salvage.salvage(path)
    store = await opened(path)
    found = await shown(store)
    assert found.items() <= crashed.held.items()
    assert len(found) == made.keys >= WRITES - 2
    assert store.revision == made.revision > newest
    assert (await store.create("/new", b"1")).mod_revision == made.revision + 1
    await store.close()
    assert made.aside.name == "store.db.damaged"
    assert made.aside.read_bytes() == before["store.db"]
    assert wal.log_of(made.aside).read_bytes() == before["store.db-wal"]
    with pytest.raises(StorageFormatError):
        salvage.examine(made.aside)


@pytest.mark.parametrize("is_index_lost", [False, True])
async def test_only_what_is_damaged_is_lost(sound: tuple[Path, Held], is_index_lost: bool) -> None:
    path, held = sound
    key, (revision, value) = next(each for each in held.items() if len(each[1][1]) < 100)
    flip(path, place_of(path, value))
    if is_index_lost:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'log_key'").fetchone()[0]
        flip(path, (root - 1) * _PAGE, 0xFF)
    made = salvage.salvage(path)
    assert made.lost == (f"'{key}' at revision {revision}",)
    store = await opened(path)
    del held[key]
    assert await shown(store) == held
    await store.close()


async def test_a_snapshot_takes_the_place_of_a_damaged_file_which_is_kept(crashed: Crashed, tmp_path: Path) -> None:
    path = crashed.again()
    flip(wal.log_of(path), _HEADER + frames(path) // 2 * _STEP + 100)
    with pytest.raises(StorageFormatError):
        snapshot.save(path, tmp_path / "of-damaged")
    snapshot.save(crashed.before, tmp_path / "snapshot")
    made = snapshot.restore(tmp_path / "snapshot", path, replaces=True)
    assert made.revision > salvage.BUMP
    store = await opened(path)
    assert len(await shown(store)) == WRITES - 1
    await store.close()
    assert path.with_name("store.db.damaged").exists()
    assert path.with_name("store.db.damaged-wal").exists()


@pytest.mark.parametrize("way", ["salvage", "restore"])
@pytest.mark.parametrize("has_log", [True, False])
async def test_a_replacement_that_is_killed_anywhere_leaves_the_old_file_or_the_new_one(
    crashed: Crashed, sound: tuple[Path, Held], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, has_log: bool
) -> None:
    snapshot.save(crashed.before, tmp_path / "snapshot")
    if has_log:
        path = crashed.again()
        flip(wal.log_of(path), _HEADER + frames(path) // 2 * _STEP + 100)
    else:
        path = sound[0]
        flip(path, place_of(path, next(value for _, value in sound[1].values() if len(value) < 100)))
    killed: list[Path] = []

    def with_copy(change: Callable[..., Any]) -> Callable[..., Any]:
        """Copy the folder after a change of a name: what a kill at this moment leaves."""

        def changed(at: Path, *arguments: Any, **options: Any) -> Any:
            result = change(at, *arguments, **options)
            if at.parent == path.parent:
                killed.append(tmp_path / f"killed-{len(killed)}" / path.name)
                shutil.copytree(path.parent, killed[-1].parent)
            return result

        return changed

    for name in ("rename", "unlink"):
        monkeypatch.setattr(Path, name, with_copy(getattr(Path, name)))
    if way == "salvage":
        salvage.salvage(path)
    else:
        snapshot.restore(tmp_path / "snapshot", path, replaces=True)
    monkeypatch.undo()
    store = await opened(path)
    new = await shown(store)
    await store.close()
    found = set()
    for left in killed:
        try:
            store = await opened(left)
        except StorageFormatError as error:
            found.add("refused")
            if "is missing" in str(error):  # as the message says
                left.with_name("store.db.damaged").rename(left)
                with pytest.raises(StorageFormatError, match="is damaged"):
                    await opened(left)
            continue
        assert await shown(store) == new
        assert not file.next_of(left).exists()
        await store.close()
        found.add("new")
    assert found == {"refused", "new"}


def test_the_checksum_of_the_log_is_that_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "any.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    with wal.log_of(path).open("rb") as log:
        before = wal.first_checksum(log.fileno())
        for frame in wal.frames(log.fileno()):
            assert wal.is_whole(log.fileno(), frame, before)
            before = frame.checksum
    index = wal.read_index(path)
    assert index is not None
    assert index.frames == frames(path)
    assert struct.unpack(">II", index.salts)
    connection.close()
