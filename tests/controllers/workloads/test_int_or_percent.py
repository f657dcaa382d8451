"""Tests of numbers that may be percentages."""

from __future__ import annotations

import pytest

from steersman.controllers.workloads.int_or_percent import scaled


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [(3, 3, 3), ("25%", 2, 3), ("100%", 10, 10), ("0%", 0, 0), (None, 0, 0), ("x%", 0, 0), ("5", 0, 0)],
)
def test_a_share_is_rounded_down_or_up(value: int | str | None, down: int, up: int) -> None:
    assert (scaled(value, 10), scaled(value, 10, round_up=True)) == (down, up)
