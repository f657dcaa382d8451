"""Tests of the verdicts of tools/chaos on histories of operations."""

from __future__ import annotations

import shutil
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from tools.chaos.allocators import Holding, given_twice, there
from tools.chaos.electors import Reign, overlaps
from tools.chaos.followers import Stretch, missed
from tools.chaos.history import History, Operation
from tools.chaos.judging import Verdict, built, judge


def operation(verb: str, value: str = "", outcome: str = "ok", version: int = 0, **given: Any) -> Operation:
    usual = Operation("k", 1, verb, value, 0, outcome, version, 0, 0)
    return replace(usual, **given)


def in_turn(*operations: Operation) -> list[Operation]:
    """Return the operations as consecutive ones, of which those with an unknown outcome have not ended."""
    return [
        replace(each, client=at, began=2 * at + 1, ended=0 if each.outcome == "unknown" else 2 * at + 2)
        for at, each in enumerate(operations)
    ]


@pytest.fixture(scope="module")
def program() -> Path:
    if shutil.which("go", path="/usr/local/go/bin") is None and shutil.which("go") is None:
        pytest.skip("there is no Go")
    return built()


def judged(program: Path, folder: Path, operations: list[Operation]) -> Verdict:
    history = History(operations)
    history.write(folder / "history.jsonl")
    return judge(program, folder / "history.jsonl", folder)


CREATED = operation("create", "a", version=5)
LINEARIZABLE = {
    "in turn": in_turn(CREATED, operation("update", "b", version=6, expected=5), operation("read", "b", version=6)),
    "a lost write happened": in_turn(
        CREATED, operation("update", "b", "unknown", expected=5), operation("read", "b", version=9)
    ),
    "a lost write happened later": in_turn(
        CREATED,
        operation("update", "b", "unknown", expected=5),
        operation("read", "a", version=5),
        operation("read", "b", version=9),
    ),
    "a lost write did not happen": in_turn(
        CREATED, operation("delete", "", "unknown", expected=5), operation("read", "a", version=5)
    ),
    "refusals": in_turn(
        operation("update", "b", "missing", expected=5),
        CREATED,
        operation("create", "b", "exists"),
        operation("delete", "", "conflict", expected=4),
        operation("delete", expected=5),
        operation("read", "", "missing"),
    ),
}
WRONG = {
    "a lost update": in_turn(
        CREATED, operation("update", "b", version=6, expected=5), operation("update", "c", version=7, expected=5)
    ),
    "a read of the past": in_turn(
        CREATED, operation("update", "b", version=6, expected=5), operation("read", "a", version=5)
    ),
    "a write that is gone": in_turn(CREATED, operation("read", "", "missing")),
    "a write that nobody made": in_turn(CREATED, operation("read", "x", version=6)),
    "a version that goes back": in_turn(CREATED, operation("update", "b", version=4, expected=5)),
    "created twice": in_turn(CREATED, operation("create", "b", version=6)),
    "a conflict with itself": in_turn(CREATED, operation("update", "b", "conflict", expected=5)),
    "a lost write that happened before its time": in_turn(
        CREATED, operation("read", "b", version=6), operation("update", "b", "unknown", expected=5)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINEARIZABLE)
def test_what_may_be_is_linearizable(program: Path, tmp_path: Path, name: str) -> None:
    found = judged(program, tmp_path, LINEARIZABLE[name])
    assert (found.wrong, found.undecided, found.keys) == ([], [], 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_not(program: Path, tmp_path: Path, name: str) -> None:
    found = judged(program, tmp_path, WRONG[name])
    assert found.wrong == ["k"]
    assert Path(found.pictures[0]).exists()


def test_informers_have_to_be_told_of_what_was_acknowledged_or_told_to_others() -> None:
    history = History([CREATED, operation("update", "b", "unknown")])
    whole = Stretch(4, 9, frozenset({5, 7}))
    assert missed([whole, Stretch(5, 6, frozenset())], history) == []
    assert "told of 7" in missed([whole, Stretch(4, 9, frozenset({5}))], history)[0]
    assert "told of 5" in missed([Stretch(4, 5, frozenset())], history)[0]


def test_two_leaders_at_a_time_are_found() -> None:
    assert overlaps([Reign("a", 1, 3), Reign("a", 2, 4), Reign("b", 4, 6), Reign("c", 9, 8)]) == []
    assert overlaps([Reign("b", 3.5, 6), Reign("a", 1, 3), Reign("a", 2, 4)])


def test_what_is_given_twice_is_found() -> None:
    one, other = Holding("a", ("port 1",), 1, 5), Holding("b", ("port 1",), 6)
    assert given_twice([one, other, Holding("c", ("port 2",), 1)]) == []
    assert given_twice([replace(one, last=inf), other])


def test_services_that_are_lost_or_share_something_are_found() -> None:
    def service(name: str, address: str) -> Any:
        return {"metadata": {"name": name}, "spec": {"clusterIPs": [address], "ports": [{"nodePort": 7}]}}

    held = Holding("a", ("10.0.0.1", "port 7"), 1)
    assert there([service("a", "10.0.0.1")], [held, Holding("gone", ("x",), 1, 2)]) == []
    assert "has None" in there([], [held])[0]
    assert "port 7 is of a and of b" in there([service("a", "10.0.0.1"), service("b", "10.0.0.2")], [held])[0]
