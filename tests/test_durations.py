"""Tests of the record of the durations of files, and of the order made from it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests import durations


def named(*nodeids: str, slow: bool = False) -> list[Any]:
    """Return tests of these names."""
    return [SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda _: slow or None) for nodeid in nodeids]


def ordered(items: list[Any], fast: dict[str, float], slow: dict[str, float]) -> list[str]:
    """Return the names of the tests in the order that these durations give."""
    return [item.nodeid for item in durations.longest_first(items, {"fast": fast, "slow": slow})]


def test_the_longest_file_comes_first_and_its_tests_stay_in_their_order() -> None:
    items = named("a.py::z", "a.py::a", "b.py::b", "c.py::c")
    assert ordered(items, {"a.py": 1.0, "b.py": 3.0, "c.py": 2.0}, {}) == ["b.py::b", "c.py::c", "a.py::z", "a.py::a"]


def test_a_file_that_nothing_is_known_of_comes_before_all() -> None:
    assert ordered(named("a.py::a", "b.py::b"), {"a.py": 100.0}, {}) == ["b.py::b", "a.py::a"]


def test_only_the_tests_that_run_count() -> None:
    fast, slow = named("a.py::a"), named("b.py::b", "a.py::s", slow=True)
    known: tuple[dict[str, float], dict[str, float]] = ({"a.py": 2.0}, {"a.py": 50.0, "b.py": 10.0})
    assert ordered([*slow, *fast], *known)[0] == "a.py::s"
    assert ordered([*fast, *named("b.py::b", slow=True)], *known)[0] == "b.py::b"


def test_measured_files_replace_known_ones_and_those_that_are_gone_are_left_out(tmp_path: Path) -> None:
    for name in ("old.py", "new.py"):
        (tmp_path / name).touch()
    known = {"fast": {"old.py": 1.0, "new.py": 9.0, "gone.py": 5.0}, "slow": {"old.py": 7.0}}
    assert durations.updated(known, {"fast": {"new.py": 2.04}}, tmp_path) == {
        "fast": {"old.py": 1.0, "new.py": 2.0},
        "slow": {"old.py": 7.0},
    }


def test_a_run_is_recorded_by_file_and_pace(tmp_path: Path) -> None:
    record = tmp_path / "durations.json"
    recorder = durations.Recorder(record)
    file = "tests/test_durations.py"
    for seconds, marks in ((0.2, {}), (0.3, {}), (4.0, {"slow": True})):
        recorder.pytest_runtest_logreport(
            SimpleNamespace(nodeid=f"{file}::x", duration=seconds, keywords=marks)  # type: ignore[arg-type]
        )
    recorder.pytest_sessionfinish()
    assert durations.read(record) == {"fast": {file: 0.5}, "slow": {file: 4.0}}


def test_the_record_in_the_project_can_be_read() -> None:
    known = durations.read()
    assert set(known) == {"fast", "slow"}
    assert all(seconds >= 0 for by_file in known.values() for seconds in by_file.values())
