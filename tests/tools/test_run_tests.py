"""Tests of the runner: failed tests are run once more, alone, and reported as flaky if they pass then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

FAILS_ONCE = """
from pathlib import Path

def test_first_try():
    tried = Path(__file__).with_name("tried")
    was_tried = tried.exists()
    tried.touch()
    assert was_tried
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder that is a project of its own."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:steersman -p no:asyncio -p no:hypothesispytest\n")
    command = [sys.executable, "-m", "tools.run_tests", "--jobs=0", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_test_that_passes_alone_is_told_as_flaky_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(FAILS_ONCE)
    names = tmp_path / "flaky.txt"
    done = run(tmp_path, f"--flaky={names}")
    assert done.returncode == 0, done.stdout
    assert "FLAKY test_some.py::test_first_try" in done.stdout
    assert names.read_text() == "test_some.py::test_first_try\n"


@pytest.mark.slow
def test_a_test_that_fails_again_fails_the_run_though_another_is_flaky(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(f"{FAILS_ONCE}\ndef test_never():\n    assert False\n")
    done = run(tmp_path)
    assert done.returncode == 1
    assert "FLAKY test_some.py::test_first_try" in done.stdout
    assert "FAILED TWICE test_some.py::test_never" in done.stdout


@pytest.mark.slow
def test_a_file_that_cannot_be_read_fails_the_run_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text("import nothing_of_this_name\n")
    done = run(tmp_path)
    assert done.returncode == 2
    assert "once more" not in done.stdout
