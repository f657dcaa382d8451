"""The commands of `steersman storage`."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steersman.cli import main
from steersman.storage.sqlite import SQLiteStorage
from tests.storage.etcd.process import EtcdProcess


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["storage", *arguments])


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The folder of a stopped server."""

    async def fill() -> None:
        store = await SQLiteStorage.open(folder / "steersman.db")
        await store.create("/registry/configmaps/default/a", b"{}\n")
        await store.close()

    folder = tmp_path / "server"
    folder.mkdir()
    asyncio.run(fill())
    return folder


def test_a_snapshot_is_saved_and_restored(data_dir: Path, tmp_path: Path) -> None:
    saved = run("save", str(tmp_path / "snapshot"), "--data-dir", str(data_dir))
    assert saved.exit_code == 0, saved.output
    assert re.fullmatch(r"saved \S+/snapshot: revision 2, 0\.0 MiB, sha256 [0-9a-f]{64}\n", saved.output)
    again = run("restore", str(tmp_path / "snapshot"), "--data-dir", str(data_dir))
    assert (again.exit_code, "already exists" in again.output) == (1, True)
    replaced = run("restore", str(tmp_path / "snapshot"), "--data-dir", str(data_dir), "--replace")
    assert replaced.output == f"restored {data_dir}/steersman.db: revision 3\n"


def test_a_snapshot_is_restored_into_a_folder_that_is_not_there_yet(data_dir: Path, tmp_path: Path) -> None:
    run("save", str(tmp_path / "snapshot"), "--data-dir", str(data_dir))
    restored = run("restore", str(tmp_path / "snapshot"), "--data-dir", str(tmp_path / "new/server"))
    assert (restored.exit_code, restored.output) == (
        0,
        f"restored {tmp_path}/new/server/steersman.db: revision 1000002\n",
    )
    assert (tmp_path / "new/server").stat().st_mode & 0o777 == 0o700


def test_what_cannot_be_done_is_told_in_one_line(tmp_path: Path) -> None:
    for arguments in (
        ("save", str(tmp_path / "snapshot")),
        ("restore", str(tmp_path / "snapshot")),
        ("to-etcd", "--etcd-servers", "http://127.0.0.1:1"),
        ("to-etcd", "--etcd-servers", "ftp://a"),
        ("to-sqlite", "--etcd-servers", "https://127.0.0.1:1", "--etcd-cafile", str(tmp_path / "none")),
    ):
        told = run(*arguments, "--data-dir", str(tmp_path / "server"))
        assert told.exit_code == 1, arguments
        assert told.output.startswith("steersman: "), told.output
        assert told.output.count("\n") == 1


@pytest.mark.slow
def test_what_is_stored_moves_to_etcd_and_back(data_dir: Path, tmp_path: Path) -> None:
    process = EtcdProcess(tmp_path / "etcd")
    process.start()
    try:
        there = run("to-etcd", "--data-dir", str(data_dir), "--etcd-servers", process.url, "--etcd-prefix", "own")
        assert there.exit_code == 0, there.output
        assert "copied to etcd: 1 keys, 0.0 MiB, at revision " in there.output
        again = run("to-etcd", "--data-dir", str(data_dir), "--etcd-servers", process.url, "--etcd-prefix", "own")
        assert (again.exit_code, "already has keys" in again.output) == (1, True)
        flags = ("--etcd-servers", process.url, "--etcd-prefix", "/own/")
        back = run("to-sqlite", "--data-dir", str(tmp_path / "new"), *flags)
        assert back.exit_code == 0, back.output
        assert re.search(r"copied to \S+/new/steersman\.db: 1 keys, 0\.0 MiB, at revision \d+\n", back.output)
    finally:
        process.stop()


def test_what_is_stored_is_checked_and_what_is_sound_is_kept(data_dir: Path) -> None:
    sound = run("check", "--data-dir", str(data_dir))
    assert sound.output == f"{data_dir}/steersman.db is intact: revision 2, 1 rows\n"
    assert run("check", "--accept-data-loss", "--data-dir", str(data_dir)).output == sound.output
    file = data_dir / "steersman.db"
    file.write_bytes(file.read_bytes().replace(b"{}\n", b"{]\n"))
    damaged = run("check", "--data-dir", str(data_dir))
    assert damaged.exit_code == 1
    assert "'/registry/configmaps/default/a' at revision 2 is not what was written" in damaged.output
    assert f"`steersman storage check --accept-data-loss --data-dir {data_dir}`" in damaged.output
    made = run("check", "--accept-data-loss", "--data-dir", str(data_dir))
    assert made.exit_code == 0
    assert "lost: '/registry/configmaps/default/a' at revision 2\n" in made.output
    assert f"rebuilt {file}: revision 1000001, 0 keys; the damaged file is {file}.damaged\n" in made.output
    assert run("check", "--data-dir", str(data_dir)).exit_code == 0
