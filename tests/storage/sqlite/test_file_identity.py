"""Files that are taken away under a store that writes them: nothing is acknowledged that a restart would not find."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.storage.interface import StorageUnavailable
from steersman.storage.sqlite import SQLiteStorage


def _copied_over(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def _moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def _replaced(path: Path) -> None:
    _moved(path)
    shutil.copytree(path.parent.with_name("moved"), path.parent)


@pytest.mark.parametrize(
    "take_away",
    [
        lambda path: shutil.rmtree(path.parent),
        Path.unlink,
        lambda path: path.with_name(path.name + "-wal").unlink(),
        _copied_over,
        _moved,
        _replaced,
    ],
)
async def test_nothing_is_acknowledged_any_more(tmp_path: Path, take_away: Callable[[Path], None]) -> None:
    path = tmp_path / "data" / "steersman.db"
    path.parent.mkdir()
    store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
    await store.create("/a", b"1")
    take_away(path)
    for number in range(3):
        with pytest.raises(StorageUnavailable, match="would not be found again"):
            await store.create(f"/b{number}", b"1")
    await store.close()
