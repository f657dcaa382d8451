"""Tests of the list of longer tests, which `make test` leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import durations, longer

NOTHING: frozenset[str] = frozenset()


def test_functions_above_the_bound_are_in_the_list_whose_files_have_quicker_ones() -> None:
    seconds = {"a.py::x": longer.BOUND * 2, "a.py::T::y": longer.BOUND * 1.1, "a.py::z": 0.01, "b.py::x": 0.0}
    assert longer.updated(NOTHING, seconds) == {"a.py::x", "a.py::T::y"}


def test_the_quickest_function_of_a_file_is_kept_unless_it_takes_long() -> None:
    assert longer.updated(NOTHING, {"a.py::x": 0.4, "a.py::y": 0.2, "b.py::x": 0.2}) == {"a.py::x"}
    assert longer.updated(NOTHING, {"a.py::x": 4.0, "b.py::y": 9.0}) == {"a.py::x", "b.py::y"}


def test_functions_near_the_bound_do_not_come_and_go() -> None:
    seconds = {"a.py::x": 0.0, "a.py::y": longer.BOUND * 0.9, "a.py::z": longer.BOUND * 0.9}
    assert longer.updated(frozenset({"a.py::y"}), seconds) == {"a.py::y"}
    assert longer.updated(frozenset({"a.py::y"}), {**seconds, "a.py::y": longer.BOUND / 2}) == NOTHING


def test_which_of_two_alike_is_kept_does_not_change() -> None:
    known = frozenset({"a.py::x"})
    assert longer.updated(known, {"a.py::x": 0.15, "a.py::y": 0.17}) == known
    assert longer.updated(known, {"a.py::x": 0.1, "a.py::y": 0.17}) == {"a.py::y"}


def test_functions_that_were_not_measured_stay_while_their_file_has_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def x() -> None: ...\nclass T: ...\n")
    known = frozenset({"a.py::x", "a.py::T::runTest", "a.py::renamed", "gone.py::x"})
    assert longer.updated(known, {"b.py::x": 0.0}, tmp_path) == {"a.py::x", "a.py::T::runTest"}


def test_a_written_list_is_read_again_in_order(tmp_path: Path) -> None:
    file = tmp_path / "longer.txt"
    assert longer.read(file) == NOTHING
    longer.write({"b.py::y", "a.py::x"}, file)
    assert longer.read(file) == {"a.py::x", "b.py::y"}
    assert file.read_text().index("a.py::x\n") < file.read_text().index("b.py::y\n")


def test_a_function_is_left_out_with_all_its_parameters(request: pytest.FixtureRequest) -> None:
    items: list[pytest.Item] = [
        pytest.Function.from_parent(request.node.parent, name=name, callobj=lambda: None)
        for name in ("x[1::a]", "x[2]", "xy", "z")
    ]
    file = durations.file_of(items[0].nodeid)
    left_out = longer.leave_out(items, frozenset({f"{file}::x", f"{file}::z[1]"}))
    assert [item.name for item in left_out] == ["x[1::a]", "x[2]"]
    assert [item.name for item in items] == ["xy", "z"]


def test_the_list_in_the_project_names_functions_once_each_and_in_order() -> None:
    lines = [line for line in longer.LIST.read_text().splitlines() if not line.startswith("#")]
    assert lines == sorted(longer.read())
    assert all(line.startswith("tests/") and "::" in line and "[" not in line for line in lines)
