"""Allocation of the server's seats among priority levels by their demand.

Solves the problem of k8s.io/apiserver `util/flowcontrol/conc_alloc.go`: every level gets the same fraction of its
target, except levels limited by one of their bounds, and all together get the given total.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

LEAST_TARGET: Final = 0.001
"""Smallest target: a level that wants less counts as wanting this."""
_EPSILON: Final = 0.0000001


class Unsolvable(ValueError):
    """No allocation satisfies all bounds."""


class Claim(Struct, frozen=True):
    """The target of a level, and its lower and upper bound, in seats."""

    target: float
    lower: float
    upper: float


def share_out(total: int, claims: Sequence[Claim]) -> tuple[list[float], float]:
    """Return the allocation of each claim, `total` together, and the fair fraction of their targets. Raises
    Unsolvable.
    """
    for claim in claims:
        if claim.lower < 0 or claim.target < claim.lower or claim.upper < claim.lower:
            raise Unsolvable(f"the bounds of {claim} contradict each other")
    lowest, highest = sum(each.lower for each in claims), sum(each.upper for each in claims)
    if lowest - total > _EPSILON or total - highest > _EPSILON:
        raise Unsolvable(f"bounds from {lowest} to {highest} cannot come to {total}")
    if total == 0:
        return [0.0] * len(claims), 0.0
    targets = [max(each.target, LEAST_TARGET) for each in claims]
    from_below = [each.lower / target for each, target in zip(claims, targets, strict=True)]
    from_above = [each.upper / target for each, target in zip(claims, targets, strict=True)]
    if lowest - total > -_EPSILON:
        return [each.lower for each in claims], min(from_below)
    if total - highest > -_EPSILON:
        return [each.upper for each in claims], max(from_above)
    fair = total / sum(targets)
    if not (max(from_below) <= fair <= min(from_above)):
        fair = _bounded_fraction(total, lowest, targets, from_below, from_above)
    got = (max(each.lower, min(each.upper, fair * target)) for each, target in zip(claims, targets, strict=True))
    return list(got), fair


def _bounded_fraction(
    total: int, lowest: float, targets: Sequence[float], from_below: Sequence[float], from_above: Sequence[float]
) -> float:
    """Return the fraction at which the allocations sum up to `total`, by going through the bounds in increasing order.

    Between two bounds the sum grows in proportion to the targets of the levels at neither bound.
    """
    steps = sorted(
        [
            *((bound, target) for bound, target in zip(from_below, targets, strict=True)),
            *((bound, -target) for bound, target in zip(from_above, targets, strict=True)),
        ],
        key=lambda step: step[0],
    )
    fraction, given, growing = steps[0][0], lowest, 0.0
    for bound, change in steps:
        if growing > 0 and bound > fraction:
            needed = (total - given) / growing
            if fraction + needed <= bound:
                return fraction + needed
            given += (bound - fraction) * growing
        fraction = max(fraction, bound)
        growing += change
    return fraction
