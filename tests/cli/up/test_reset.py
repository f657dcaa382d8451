"""`steersman reset`, and `status` and `down` for servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from steersman.cli import main
from steersman.cli.up.process_file import running
from steersman.testing import ServerProcess


def run(*arguments: str, home: Path | None = None, answer: str | None = None) -> Result:
    environment = {"HOME": str(home), "KUBECONFIG": ""} if home is not None else {}
    return CliRunner().invoke(main, list(arguments), env=environment, input=answer)


def test_a_server_is_found_by_its_folder_and_ended_with_its_context(
    make_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server: ServerProcess = make_server()
    where = ("--data-dir", str(server.folder))
    assert run("status", *where).stderr == f"steersman: no cluster or server is running in {server.folder}\n"
    server.start()
    found = running(server.folder)
    assert found is not None
    assert found.pid == server.pid
    output = run("status", *where).stdout
    assert f"address     {server.url}, up " in output
    assert f"process     {server.pid}\n" in output
    assert run("kubeconfig", *where, home=tmp_path).exit_code == 0
    config = tmp_path / ".kube" / "config"
    ended = run("down", *where, home=tmp_path)
    assert (ended.exit_code, ended.stdout) == (0, f"ended\ncontext steersman was removed from {config}\n")
    assert server.wait() == 0
    assert yaml.safe_load(config.read_text())["contexts"] == []


@pytest.mark.slow
def test_a_folder_becomes_what_it_was_before_the_first_start(
    make_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server: ServerProcess = make_server()
    where = ("--data-dir", str(server.folder))
    assert run("reset", *where, "--yes").stderr == (f"steersman: {server.folder} has no data of a cluster or server\n")
    server.start()
    assert run("kubeconfig", *where, home=tmp_path).exit_code == 0
    before = sorted(server.folder.iterdir())
    refused = run("reset", *where, "--yes", home=tmp_path)
    assert (
        f"a cluster or a server is running in {server.folder} as process {server.pid}; use `steersman down"
        in refused.stderr
    )
    server.stop()
    assert {each.name for each in before} <= {each.name for each in server.folder.iterdir()} | {
        "steersman.db-wal",
        "steersman.db-shm",
    }
    assert "--yes is required" in run("reset", *where, home=tmp_path).stderr
    (mine := server.folder / "mine.yaml").write_text("")
    (server.folder / "steersman.db.replaced").write_text("")
    (server.folder / "ca.crt.1").write_text("")
    done = run("reset", *where, "--yes", home=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"context steersman was removed from {tmp_path}/.kube/config\n")
    assert list(server.folder.iterdir()) == [mine]
    server.start()
    server.stop()


def test_a_folder_with_a_link_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    (key := tmp_path / "key").write_text("")
    (folder / "ca.key").symlink_to(key)
    (folder / "ca.crt").write_text("")
    refused = run("reset", "--data-dir", str(folder), "--yes")
    assert refused.exit_code == 1
    assert f"cannot delete data in {folder}: " in refused.stderr
    assert {each.name for each in folder.iterdir()} == {"ca.key", "ca.crt"}
    assert key.exists()


def test_paths_that_are_printed_are_true_in_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ServerProcess(Path("data"), "--storage=memory") as server:
        assert server.kubeconfig == tmp_path / "data" / "admin.kubeconfig"
        assert server.ca == tmp_path / "data" / "ca.crt"
        assert f"kubeconfig  {tmp_path}/data/admin.kubeconfig" in run("status", "--data-dir", "data").stdout
    for arguments in (("status",), ("down",), ("reset", "--yes"), ("kubeconfig",), ("storage", "save", "s")):
        assert f"{tmp_path}/none" in run(*arguments, "--data-dir", "none").stderr, arguments
