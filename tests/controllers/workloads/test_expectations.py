"""What is waited for."""

from __future__ import annotations

from steersman.controllers.workloads.expectations import Expectations


async def test_nothing_is_done_until_all_was_seen() -> None:
    expected: Expectations[str] = Expectations()
    assert expected.satisfied("a")
    expected.expect("a", creations=2)
    expected.created("a")
    assert not expected.satisfied("a")
    expected.created("a")
    assert expected.satisfied("a")


async def test_a_deletion_counts_once_however_often_it_is_seen() -> None:
    expected: Expectations[str] = Expectations()
    expected.expect("a", deletions=("one", "two"))
    for _ in range(3):
        expected.deleted("a", "one")
    assert not expected.satisfied("a")
    expected.deleted("a", "two")
    assert expected.satisfied("a")


async def test_more_can_be_expected_besides() -> None:
    expected: Expectations[str] = Expectations()
    expected.raise_by("a", creations=1)
    expected.raise_by("a", creations=1, deletions=("one",))
    expected.created("a", 2)
    assert not expected.satisfied("a")
    expected.forget("a")
    assert expected.satisfied("a")
