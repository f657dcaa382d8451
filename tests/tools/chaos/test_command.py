"""Tests of tools/chaos as a whole, for a short time."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.storage.etcd.process import program
from tools.chaos import command, lies, wires
from tools.chaos.asking import Violation
from tools.chaos.command import main


@pytest.fixture(autouse=True)
def with_go() -> None:
    """Skip the test without Go, which builds the checker."""
    if shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin") is None:
        pytest.skip("there is no Go")


@pytest.mark.slow
def test_nothing_is_broken_while_a_server_is_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--storage", "sqlite", "--seconds", "8", "--longest", "2", "--rest", "1", "--only", "kill-server"]
    assert main([*arguments, "--keep", str(tmp_path / "kept")]) == 0
    output = capsys.readouterr().out
    assert "kill -9 of server 0" in output
    assert "all that was promised is so" in output
    assert main(["--judge", str(tmp_path / "kept" / "history.jsonl")]) == 0


@pytest.mark.slow
def test_a_fault_that_fails_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise Violation("server 0 does not end")

    monkeypatch.setattr(command, "play", fails)
    began = time.monotonic()
    assert main(["--storage", "sqlite", "--seconds", "300", "--keep", str(tmp_path / "kept")]) == 1
    assert time.monotonic() - began < 200
    assert "VIOLATION: server 0 does not end" in capsys.readouterr().out


@pytest.mark.slow
def test_nothing_is_broken_while_disks_fail_and_clocks_jump_under_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if lies.built() is None:
        pytest.skip("there is no C compiler, or this is no Linux")
    arguments = ["--storage", "sqlite", "--workers", "2", "--seconds", "20", "--longest", "2", "--rest", "1"]
    only = ["--only", "failing-sync,power-cut,clock-jump,kill-worker"]
    assert main([*arguments, *only, "--keep", str(tmp_path / "kept")]) == 0
    assert "left out" not in capsys.readouterr().out


@pytest.mark.slow
def test_nothing_is_broken_while_packets_are_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program()
    if os.geteuid() != 0:
        pytest.skip("namespaces are made by root")
    if why_not := wires.impossible():
        pytest.skip(why_not)
    arguments = ["--namespaces", "--seconds", "15", "--longest", "2", "--rest", "1", "--no-full-disk"]
    assert main([*arguments, "--only", "unplug,lose-packets,loose-wire", "--keep", str(tmp_path / "kept")]) == 0
    assert "not linearizable: 0" in capsys.readouterr().out


@pytest.mark.slow
def test_nothing_is_broken_on_etcd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program()
    arguments = ["--seconds", "10", "--longest", "2", "--rest", "1", "--no-full-disk", "--only", "stop-member,compact"]
    assert main([*arguments, "--keep", str(tmp_path / "kept")]) == 0
    assert "not linearizable: 0" in capsys.readouterr().out
