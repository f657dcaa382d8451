"""Tests of the runner: parts of the tests run in processes, and failed tests once more, alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT, durations, longer

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
    command = [sys.executable, "-m", "tools.run_tests", *arguments, "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_test_that_passes_alone_is_told_as_flaky_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(FAILS_ONCE)
    names = tmp_path / "flaky.txt"
    done = run(tmp_path, "--jobs=0", f"--flaky={names}")
    assert done.returncode == 0, done.stdout
    assert "FLAKY test_some.py::test_first_try" in done.stdout
    assert names.read_text() == "test_some.py::test_first_try\n"


@pytest.mark.slow
def test_a_test_that_fails_again_fails_the_run_though_another_is_flaky(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(f"{FAILS_ONCE}\ndef test_never():\n    assert False\n")
    done = run(tmp_path, "--jobs=1")
    assert done.returncode == 1
    assert "FLAKY test_some.py::test_first_try" in done.stdout
    assert "FAILED TWICE test_some.py::test_never" in done.stdout


@pytest.mark.slow
def test_a_file_that_cannot_be_read_fails_the_run_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text("import nothing_of_this_name\n")
    done = run(tmp_path, "--jobs=1")
    assert done.returncode == 2
    assert "once more" not in done.stdout


def make_files(folder: Path, **bodies: str) -> None:
    """Write a file of a single test for each name, so that each is a part."""
    for name, body in bodies.items():
        (folder / f"test_{name}.py").write_text(f"import os, time\n\ndef test_{name}():\n    {body}\n")


@pytest.mark.slow
def test_every_part_runs_and_a_failure_in_one_fails_the_run(tmp_path: Path) -> None:
    make_files(tmp_path, good="pass", bad="assert 1 == 2", fine="pass")
    done = run(tmp_path, "--jobs=3")
    assert done.returncode == 1
    assert done.stdout.count("1 passed") == 2
    assert "assert 1 == 2" in done.stdout
    assert "FAILED TWICE test_bad.py::test_bad" in done.stdout
    assert run(tmp_path, "--jobs=3", "--ignore=test_bad.py").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("end", ["os._exit(1)", "os._exit(0)", "os.abort()", "os._exit(5)"])
def test_a_process_that_dies_fails_the_run_though_another_has_flaky_tests_only(end: str, tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FAILS_ONCE)
    make_files(tmp_path, dead=end)
    done = run(tmp_path, "--jobs=2")
    assert done.returncode != 0
    assert "once more" not in done.stdout


@pytest.mark.slow
def test_selected_tests_run_and_a_part_may_have_none(tmp_path: Path) -> None:
    make_files(tmp_path, good="pass", bad="assert False")
    done = run(tmp_path, "--jobs=2", "-k", "good")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert run(tmp_path, "--jobs=2", "-k", "neither").returncode == 5


@pytest.mark.slow
def test_the_first_failure_ends_all_processes_if_wanted(tmp_path: Path) -> None:
    make_files(tmp_path, bad="assert False", long="time.sleep(60)")
    done = run(tmp_path, "--jobs=2", "-x")
    assert done.returncode not in {0, 5}
    assert "FAILED test_bad.py::test_bad" in done.stdout
    assert "once more" not in done.stdout


@pytest.mark.slow
def test_durations_are_recorded(tmp_path: Path) -> None:
    record, files = tmp_path / "record.json", ["tests/test_durations.py", "tests/tools/test_run_tests.py"]
    command = [sys.executable, "-m", "tools.run_tests", "--jobs=2", f"--record={record}", "-k", "parts", *files]
    subprocess.run(command, cwd=ROOT, check=True)
    assert durations.read(record)["fast"].keys() == {files[0]}


@pytest.mark.slow
def test_longer_tests_are_left_out_of_a_short_run() -> None:
    listed = sorted(longer.read())
    name = next(
        each for each in listed if f"def {each.rpartition('::')[2]}(" in (ROOT / durations.file_of(each)).read_text()
    )
    command = [sys.executable, "-m", "tools.run_tests", "--jobs=1", "-m", "not slow", name]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    assert subprocess.run([*command, "--short"], cwd=ROOT, check=False).returncode == 5
