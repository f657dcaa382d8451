"""`steersman replay`: refused flags and recordings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from steersman.cli.main import main
from steersman.dumps.recordings import change_line, header_line

_DAY = 86400.0
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}


def recording(folder: Path, days: float) -> str:
    file = folder / "r.rec"
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    file.write_bytes(
        header_line() + change_line(0.0, "PRESENT", obj) + change_line(days * _DAY, "MODIFIED", {**obj, "data": {}})
    )
    return str(file)


@pytest.mark.parametrize("speed", ["nan", "inf", "0", "3601"])
def test_speeds_that_no_clock_has_are_refused(tmp_path: Path, speed: str) -> None:
    found = CliRunner().invoke(main, ["replay", recording(tmp_path, 1), "--speed", speed])
    assert (found.exit_code, "--speed" in found.output) == (1, True)


@pytest.mark.parametrize(("days", "until"), [(181, []), (1e300, []), (1, ["--until", "9999-01-01T00:00:00Z"])])
def test_a_replay_beyond_the_reach_of_the_clock_is_refused(tmp_path: Path, days: float, until: list[str]) -> None:
    found = CliRunner().invoke(main, ["replay", recording(tmp_path, days), *until])
    assert found.exit_code == 1
    assert "a replay has at most 180 days: use --until" in found.output


def test_an_end_before_the_beginning_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "day.rec"
    file.write_bytes(header_line() + change_line(1_800_000_000.0, "PRESENT", NODE))
    found = CliRunner().invoke(main, ["replay", str(file), "--until", "2020-01-01T00:00:00Z"])
    assert (found.exit_code, "--until: before the recording begins" in found.output) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_its_folder_goes_when_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "steersman.cli", "replay", recording(tmp_path, 100)],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith("ready ")
        (folder,) = temporary.iterdir()
        assert (folder / "ca.key").exists()
        program.send_signal(number)
        _, errors = program.communicate(timeout=60)
    assert program.returncode == 1
    assert errors.splitlines()[-1] == f"steersman: {'terminated' if number == signal.SIGTERM else 'interrupted'}"
    assert list(temporary.iterdir()) == []
