"""controller-runtime's envtest with the programs of `steersman envtest`: the program in envtest/."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from steersman.cli.envtest import assets
from tests.e2e.go_programs import build

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("envtest")


def processes_with(text: str) -> list[str]:
    """Return the command lines of processes that contain a text."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        if text in line:
            processes.append(line)
    return processes


def test_envtest_starts_uses_and_stops_a_control_plane_that_leaves_nothing(tmp_path: Path) -> None:
    program = build(SOURCE, tmp_path / "program")
    programs = assets.make(tmp_path / "home")
    done = subprocess.run(
        [program],
        env={**os.environ, "KUBEBUILDER_ASSETS": str(programs), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["users"] == ["alice of team, system:authenticated"]
    assert said["left"] == []
    assert processes_with(str(tmp_path)) == []
    # Watches were open: the end neither waits for them nor for a second in which clients may read.
    assert said["milliseconds"]["stop"] < 15_000
