"""Tests of the record of the durations of files, and of the parts made from it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, cast

import pytest

from tests import durations

Phase = Literal["setup", "call", "teardown"]


def test_parts_take_equally_long() -> None:
    known = {"fast": {"a.py": 9.0, "b.py": 5.0, "c.py": 4.0, "d.py": 1.0}, "slow": {"d.py": 50.0}}
    assert durations.parts(["a.py", "b.py", "c.py"], 2, known, "fast") == [["a.py"], ["b.py", "c.py"]]
    assert durations.parts(["a.py", "b.py", "c.py", "d.py"], 2, known, None) == [["d.py"], ["a.py", "b.py", "c.py"]]


def test_an_unknown_file_counts_as_the_average_and_one_without_tests_of_the_pace_as_nothing() -> None:
    known = {"fast": {"a.py": 1.0, "b.py": 5.0}, "slow": {"empty.py": 1.0, "s.py": 90.0}}
    assert durations.parts(["b.py", "new.py", "a.py"], 2, known, "fast") == [["b.py"], ["new.py", "a.py"]]
    assert durations.parts(["a.py", "s.py", "empty.py"], 2, known, "fast") == [["a.py"], ["s.py", "empty.py"]]


def test_parts_of_short_tests_take_equally_long_without_the_longer_ones() -> None:
    known = {"fast": {"a.py": 90.0, "b.py": 5.0, "c.py": 4.0}, "slow": {}, "short": {"a.py": 1.0, "b.py": 5.0}}
    assert durations.parts(["a.py", "b.py", "c.py"], 2, known, "short") == [["b.py"], ["a.py", "c.py"]]


def test_each_part_has_files_and_names_of_tests_count_as_their_file() -> None:
    known: durations.Seconds = {"fast": {"a.py": 9.0, "b.py": 1.0}, "slow": {}}
    assert durations.parts(["a.py::x"], 3, known, "fast") == [["a.py::x"]]
    assert durations.parts(["b.py", "b.py::y", "a.py::x"], 2, known, "fast") == [["a.py::x"], ["b.py", "b.py::y"]]
    assert durations.parts([], 2, known, "fast") == [[]]


def test_measured_files_replace_known_ones_and_those_that_are_gone_are_left_out(tmp_path: Path) -> None:
    for name in ("old.py", "new.py"):
        (tmp_path / name).touch()
    known: durations.Seconds = {"fast": {"old.py": 1.0, "new.py": 9.0, "gone.py": 5.0}, "slow": {"old.py": 7.0}}
    known["short"] = {"old.py": 0.5, "new.py": 9.0, "gone.py": 5.0}
    seconds = {"new.py::x": 1.5, "new.py::y": 0.3}
    measured = durations.Measured({"fast": {"new.py": 2.04}, "slow": {}}, seconds)
    assert durations.updated(known, measured, {"new.py::x"}, tmp_path) == {
        "fast": {"old.py": 1.0, "new.py": 2.0},
        "slow": {"old.py": 7.0},
        "short": {"old.py": 0.5, "new.py": 0.5},
    }


def test_the_measurements_of_several_processes_are_added_up_by_file_pace_and_function(tmp_path: Path) -> None:
    file = "tests/test_durations.py"
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        recorder = durations.Recorder(folder)
        name = f"{file}::x[{number}]"
        record(recorder, name, "setup", 0.2)
        record(recorder, name, "call", 0.3)
        record(recorder, name, "teardown", 0.5)
        record(recorder, name, "call", 4.0, is_slow=True)
        recorder.pytest_sessionfinish()
    files, functions = durations.merged(tmp_path.glob("*/*"))
    assert files == {"fast": {file: 2.0}, "slow": {file: 8.0}}
    assert functions == {f"{file}::x": 1.0}


def record(recorder: durations.Recorder, nodeid: str, phase: Phase, seconds: float, *, is_slow: bool = False) -> None:
    """Tell the recorder of a phase of a test."""
    report = pytest.TestReport(nodeid, ("file.py", 1, "x"), {}, "passed", None, phase, duration=seconds)
    report.keywords = {"slow": 1} if is_slow else {}
    recorder.pytest_runtest_logreport(report)


def test_fixtures_that_tests_share_do_not_count_for_the_function_that_starts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(100))
    monkeypatch.setattr(durations, "perf_counter", lambda: float(next(now)))
    recorder = durations.Recorder(tmp_path)
    for scope, inner in (("module", "session"), ("function", None)):
        outer = setting_up(recorder, scope)
        if inner:
            finish(setting_up(recorder, inner))
        finish(outer)
    record(recorder, "a.py::x", "setup", 1.25)
    record(recorder, "a.py::y", "setup", 1.25)
    recorder.pytest_sessionfinish()
    assert durations.merged(tmp_path.iterdir()).functions == {"a.py::x": 0.25, "a.py::y": 1.25}


def setting_up(recorder: durations.Recorder, scope: str) -> Generator[None, object, object]:
    """Begin to set up a fixture of a scope."""
    definition = SimpleNamespace(scope=scope)
    running = recorder.pytest_fixture_setup(cast("pytest.FixtureDef[object]", definition))
    next(running)
    return running


def finish(running: Generator[None, object, object]) -> None:
    """End the setup of a fixture."""
    with pytest.raises(StopIteration):
        running.send("value")


def test_the_record_in_the_project_can_be_read() -> None:
    known = durations.read()
    assert set(known) == {"fast", "slow", "short"}
    assert all(seconds >= 0 for by_file in known.values() for seconds in by_file.values())
