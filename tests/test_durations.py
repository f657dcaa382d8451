"""Tests of the record of the durations of files, and of the parts made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import durations


def test_parts_take_equally_long() -> None:
    known = {"fast": {"a.py": 9.0, "b.py": 5.0, "c.py": 4.0, "d.py": 1.0}, "slow": {"d.py": 50.0}}
    assert durations.parts(["a.py", "b.py", "c.py"], 2, known, "fast") == [["a.py"], ["b.py", "c.py"]]
    assert durations.parts(["a.py", "b.py", "c.py", "d.py"], 2, known, None) == [["d.py"], ["a.py", "b.py", "c.py"]]


def test_an_unknown_file_counts_as_the_average_and_one_without_tests_of_the_pace_as_nothing() -> None:
    known = {"fast": {"a.py": 1.0, "b.py": 5.0}, "slow": {"empty.py": 1.0, "s.py": 90.0}}
    assert durations.parts(["b.py", "new.py", "a.py"], 2, known, "fast") == [["b.py"], ["new.py", "a.py"]]
    assert durations.parts(["a.py", "s.py", "empty.py"], 2, known, "fast") == [["a.py"], ["s.py", "empty.py"]]


def test_each_part_has_files_and_names_of_tests_count_as_their_file() -> None:
    known: durations.Seconds = {"fast": {"a.py": 9.0, "b.py": 1.0}, "slow": {}}
    assert durations.parts(["a.py::x"], 3, known, "fast") == [["a.py::x"]]
    assert durations.parts(["b.py", "b.py::y", "a.py::x"], 2, known, "fast") == [["a.py::x"], ["b.py", "b.py::y"]]
    assert durations.parts([], 2, known, "fast") == [[]]


def test_measured_files_replace_known_ones_and_those_that_are_gone_are_left_out(tmp_path: Path) -> None:
    for name in ("old.py", "new.py"):
        (tmp_path / name).touch()
    known = {"fast": {"old.py": 1.0, "new.py": 9.0, "gone.py": 5.0}, "slow": {"old.py": 7.0}}
    assert durations.updated(known, {"fast": {"new.py": 2.04}}, tmp_path) == {
        "fast": {"old.py": 1.0, "new.py": 2.0},
        "slow": {"old.py": 7.0},
    }


def test_the_measurements_of_several_processes_are_added_up_by_file_and_pace(tmp_path: Path) -> None:
    record, file = tmp_path / "durations.json", "tests/test_durations.py"
    measured = [tmp_path / name for name in ("1", "2")]
    for folder in measured:
        folder.mkdir()
        recorder = durations.Recorder(folder)
        for seconds, is_slow in ((0.2, False), (0.3, False), (4.0, True)):
            report = pytest.TestReport(f"{file}::x", (file, 1, "x"), {}, "passed", None, "call", duration=seconds)
            report.keywords = {"slow": 1} if is_slow else {}
            recorder.pytest_runtest_logreport(report)
        recorder.pytest_sessionfinish()
    durations.merge([each for folder in measured for each in folder.iterdir()], record)
    assert durations.read(record) == {"fast": {file: 1.0}, "slow": {file: 8.0}}


def test_the_record_in_the_project_can_be_read() -> None:
    known = durations.read()
    assert set(known) == {"fast", "slow"}
    assert all(seconds >= 0 for by_file in known.values() for seconds in by_file.values())
