"""Tests of expectations."""

from __future__ import annotations

from steersman.controllers.workloads.expectations import Expectations


async def test_nothing_is_done_until_all_was_seen() -> None:
    expected: Expectations[str] = Expectations()
    assert expected.are_satisfied("a")
    expected.expect("a", creations=2)
    expected.observe_creation("a")
    assert not expected.are_satisfied("a")
    expected.observe_creation("a")
    assert expected.are_satisfied("a")


async def test_a_deletion_counts_once_however_often_it_is_seen() -> None:
    expected: Expectations[str] = Expectations()
    expected.expect("a", deletions=("one", "two"))
    for _ in range(3):
        expected.observe_deletion("a", "one")
    assert not expected.are_satisfied("a")
    expected.observe_deletion("a", "two")
    assert expected.are_satisfied("a")


async def test_more_can_be_expected_besides() -> None:
    expected: Expectations[str] = Expectations()
    expected.add("a", creations=1)
    expected.add("a", creations=1, deletions=("one",))
    expected.observe_creation("a", 2)
    assert not expected.are_satisfied("a")
    expected.forget("a")
    assert expected.are_satisfied("a")
