"""Sets of tolerations: what includes what, and two sets made one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.admission_plugins.tolerations import all_included, includes, merge_tolerations
from steersman.api.core.v1 import Toleration

EVERYTHING = Toleration(operator="Exists")
SECONDS = st.one_of(st.none(), st.integers(0, 3))
TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from(["Exists", "Equal"]),
    value=st.sampled_from(["", "x"]),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
    toleration_seconds=SECONDS,
)


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
def test_what_includes_what(wide, narrow, included):
    assert includes(wide, narrow) is included


def test_a_shorter_time_is_included_in_a_longer_one():
    def seconds(number: int | None) -> Toleration:
        return Toleration(key="a", operator="Exists", effect="NoExecute", toleration_seconds=number)

    assert includes(seconds(10), seconds(5))
    assert not includes(seconds(5), seconds(10))
    assert includes(seconds(None), seconds(5))
    assert not includes(seconds(5), seconds(None))


@given(st.lists(TOLERATIONS, max_size=4), st.lists(TOLERATIONS, max_size=4))
def test_a_merged_set_says_all_that_both_say_and_nothing_twice(first, second):
    merged = merge_tolerations(first, second)
    assert all(each in [*first, *second] for each in merged)
    assert all_included([*first, *second], merged)
    for each in merged:
        assert not any(includes(other, each) for other in merged if other is not each)
