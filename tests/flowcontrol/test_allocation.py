"""Allocation of seats to levels."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steersman.flowcontrol.allocation import Claim, Unsolvable, share_out

_CLAIMS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 200), st.integers(0, 300)).map(
        lambda parts: Claim(float(parts[0] + parts[1]), float(parts[0]), float(parts[0] + parts[2]))
    ),
    min_size=1,
    max_size=8,
)


@given(_CLAIMS, st.integers(0, 2000))
def test_everybody_gets_the_fair_fraction_or_a_bound(claims: list[Claim], total: int) -> None:
    lowest, highest = sum(each.lower for each in claims), sum(each.upper for each in claims)
    assume(lowest <= total <= highest)
    assume(total > 0)
    got, fair = share_out(total, claims)
    assert sum(got) == pytest.approx(total)
    for claim, seats in zip(claims, got, strict=True):
        assert claim.lower - 1e-6 <= seats <= claim.upper + 1e-6
        wanted = fair * max(claim.target, 0.001)
        if seats == pytest.approx(wanted):
            continue
        assert seats == pytest.approx(claim.lower if wanted < claim.lower else claim.upper)


def test_what_cannot_be_shared_out_is_an_error() -> None:
    with pytest.raises(Unsolvable):
        share_out(10, [Claim(20, 20, 30)])
    with pytest.raises(Unsolvable):
        share_out(100, [Claim(20, 20, 30)])
    with pytest.raises(Unsolvable):
        share_out(10, [Claim(1, 2, 30)])


def test_a_level_that_wants_nothing_lends_what_it_may() -> None:
    got, _ = share_out(20, [Claim(10, 5, 20), Claim(2, 2, 20)])
    assert got[0] == pytest.approx(20 * 10 / 12)
    assert got[1] == pytest.approx(20 * 2 / 12)
