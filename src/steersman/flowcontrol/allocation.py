"""How the server's seats are shared out among priority levels that want more or fewer of them than is theirs.

The problem is that of k8s.io/apiserver `util/flowcontrol/conc_alloc.go`: every level gets the same fraction of what it
wants, but for those that are held by a bound of theirs, and all of them together get what there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

LEAST_TARGET: Final = 0.001
"""What a level counts as wanting that wants less."""
_EPSILON: Final = 0.0000001


class Unsolvable(ValueError):
    """No allocation keeps all bounds."""


class Claim(Struct, frozen=True):
    """What a level wants (`target`), and the least and the most that it may get, in seats."""

    target: float
    lower: float
    upper: float


def share_out(total: int, claims: Sequence[Claim]) -> tuple[list[float], float]:
    """What each claim gets, `total` together, and the fair fraction of their targets. Raises Unsolvable."""
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
    """The fraction at which what all get comes to `total`, found by going up from bound to bound.

    Between two bounds what they get grows with the sum of the targets of those that are at neither bound.
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
