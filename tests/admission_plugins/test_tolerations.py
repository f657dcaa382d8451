"""Tests of tolerations: inclusion, and merging of two lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.admission_plugins.tolerations import all_included, merge_tolerations
from steersman.api.core.v1 import Toleration
from tests.counted_work import grows_too_fast, with_texts

EVERYTHING = Toleration(operator="Exists")
SECONDS = st.one_of(st.none(), st.integers(0, 3))
TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from(["Exists", "Equal", "", "Lt"]),
    value=st.sampled_from(["", "x"]),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
    toleration_seconds=SECONDS,
)


def includes(wide: Toleration, narrow: Toleration) -> bool:
    """Return True if `wide` includes `narrow`, compared as a pair, as upstream does."""
    if wide == narrow:
        return True
    if narrow.key != wide.key and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect and narrow.effect != wide.effect:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator == "Exists":
        return True
    return wide.operator in ("", "Equal") and narrow.operator == "Equal" and narrow.value == wide.value


@given(st.lists(TOLERATIONS, max_size=6), st.lists(TOLERATIONS, max_size=6))
def test_sets_are_compared_as_all_of_their_pairs(first: Any, second: Any) -> None:
    assert all_included(first, second) == all(any(includes(wide, each) for wide in second) for each in first)
    every = [*first, *second]
    merged: list[Any] = []
    for index, each in enumerate(every):
        exceeded = any(other != each and includes(other, each) for other in every[index + 1 :])
        if not exceeded and not any(includes(other, each) for other in merged):
            merged.append(each)
    assert merge_tolerations(first, second) == merged


def test_not_every_pair_is_looked_at() -> None:
    def merging(count: int) -> Callable[[], object]:
        several = [with_texts(Toleration(key=f"k{n}", operator="Equal", value="x")) for n in range(count)]
        return lambda: (merge_tolerations(several, several), all_included(several, several))

    assert not grows_too_fast(merging)


@pytest.mark.parametrize(
    ("wide", "narrow", "included"),
    [
        (EVERYTHING, Toleration(key="a", operator="Equal", value="x", effect="NoSchedule"), True),
        (Toleration(key="a", operator="Exists"), Toleration(key="a", operator="Equal", value="x"), True),
        (Toleration(key="a", operator="Exists"), Toleration(key="b", operator="Exists"), False),
        (Toleration(key="a", operator="Equal", value="x"), Toleration(key="a", operator="Exists"), False),
        (Toleration(key="a", value="x"), Toleration(key="a", operator="Equal", value="x"), True),
        (Toleration(key="a", operator="Exists", effect="NoSchedule"), Toleration(key="a", operator="Exists"), False),
    ],
)
def test_what_includes_what(wide: Any, narrow: Toleration, included: bool) -> None:
    assert all_included([narrow], [wide]) is included


def test_a_shorter_time_is_included_in_a_longer_one() -> None:
    def seconds(number: int | None) -> Toleration:
        return Toleration(key="a", operator="Exists", effect="NoExecute", toleration_seconds=number)

    assert all_included([seconds(5)], [seconds(10)])
    assert not all_included([seconds(10)], [seconds(5)])
    assert all_included([seconds(5)], [seconds(None)])
    assert not all_included([seconds(None)], [seconds(5)])


@given(st.lists(TOLERATIONS, max_size=4), st.lists(TOLERATIONS, max_size=4))
def test_a_merged_set_says_all_that_both_say_and_nothing_twice(first: Any, second: Any) -> None:
    merged = merge_tolerations(first, second)
    assert all(each in [*first, *second] for each in merged)
    assert all_included([*first, *second], merged)
    for each in merged:
        assert not any(includes(other, each) for other in merged if other is not each)
