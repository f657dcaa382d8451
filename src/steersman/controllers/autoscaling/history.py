"""Recent recommendations and scalings of an autoscaler, and the limits that follow from them (horizontal.go).

Times are in seconds since 1970.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from steersman.api.autoscaling.v2 import HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules

_FASTEST: Final = 2.0
_AT_LEAST: Final = 4
"""Limit of a scale-up without a behavior: twice the current number of replicas, or four."""

LOWER: Final = "recent recommendations were lower than current one, applying the lowest recent recommendation"
HIGHER: Final = "recent recommendations were higher than current one, applying the highest recent recommendation"
_WITHIN: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST_UP: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_TOO_FAST_DOWN: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


class Limited(NamedTuple):
    """Allowed number of replicas, with the reason and message of a condition."""

    replicas: int
    reason: str
    message: str


class Bounds(NamedTuple):
    """Current, least and most replicas of an autoscaler."""

    current: int
    least: int
    most: int


class _Change(NamedTuple):
    """Number of replicas that were recommended, added or removed, and the time."""

    replicas: int
    at: float


class History(Struct):
    """History of one autoscaler. New entries overwrite expired ones, so that the lists stay short."""

    recommendations: list[_Change] = field(default_factory=list)
    added: list[_Change] = field(default_factory=list)
    removed: list[_Change] = field(default_factory=list)

    def record_initial(self, replicas: int, now: float) -> None:
        """Record the current number of replicas as the first recommendation."""
        if not self.recommendations:
            self.recommendations.append(_Change(replicas, now))

    def stabilized(self, desired: int, window: float, now: float) -> int:
        """Record a recommendation, and return the highest one of the last `window` seconds."""
        cutoff = now - window
        highest = max((each.replicas for each in self.recommendations if each.at >= cutoff), default=desired)
        self._recommend(_Change(desired, now), lambda each: each.at < cutoff)
        return max(highest, desired)

    def stabilized_by(self, rules: HorizontalPodAutoscalerBehavior, desired: int, current: int, now: float) -> Limited:
        """Record a recommendation, and return the one nearest to `current` that the windows of both directions allow."""
        up, down = _rules_up_and_down(rules)
        up_cutoff = now - (up.stabilization_window_seconds or 0)
        down_cutoff = now - (down.stabilization_window_seconds or 0)
        lowest = min([desired, *(each.replicas for each in self.recommendations if each.at > up_cutoff)])
        highest = max([desired, *(each.replicas for each in self.recommendations if each.at > down_cutoff)])
        self._recommend(_Change(desired, now), lambda each: each.at < up_cutoff and each.at < down_cutoff)
        replicas = min(max(current, lowest), highest)
        if desired >= current:
            return Limited(replicas, "ScaleUpStabilized", LOWER)
        return Limited(replicas, "ScaleDownStabilized", HIGHER)

    def scaled(self, rules: HorizontalPodAutoscalerBehavior | None, before: int, after: int, now: float) -> None:
        """Record a scaling, for the periods of the policies."""
        if rules is None:
            return
        up, down = _rules_up_and_down(rules)
        (changes, of) = (self.added, up) if after > before else (self.removed, down)
        longest = max((each.period_seconds for each in of.policies or ()), default=0)
        _store_change(changes, _Change(abs(after - before), now), lambda each: each.at < now - longest)

    def limited_by(self, rules: HorizontalPodAutoscalerBehavior, desired: int, bounds: Bounds, now: float) -> Limited:
        """Return the number of replicas that the policies of the direction allow."""
        up, down = _rules_up_and_down(rules)
        current, least, most = bounds
        if desired > current:
            fastest = max(_limit(up, current, self._replicas_at_start(up, current, now), _ADDING), current)
            reason = _TOO_FAST_UP if most > fastest else _TOO_MANY
            return Limited(desired, *_WITHIN) if desired <= min(most, fastest) else Limited(min(most, fastest), *reason)
        if desired < current:
            fastest = min(_limit(down, current, self._replicas_at_start(down, current, now), _REMOVING), current)
            reason = _TOO_FAST_DOWN if least < fastest else _TOO_FEW
            return (
                Limited(desired, *_WITHIN) if desired >= max(least, fastest) else Limited(max(least, fastest), *reason)
            )
        return Limited(desired, *_WITHIN)

    def _replicas_at_start(self, rules: HPAScalingRules, current: int, now: float) -> list[int]:
        """Return the number of replicas at the start of each policy's period."""
        return [
            current - _within(self.added, now - each.period_seconds) + _within(self.removed, now - each.period_seconds)
            for each in rules.policies or ()
        ]

    def _recommend(self, change: _Change, is_old: Callable[[_Change], bool]) -> None:
        _store_change(self.recommendations, change, is_old)


def limited(desired: int, bounds: Bounds) -> Limited:
    """Return the number of replicas that is allowed without a behavior."""
    current, least, most = bounds
    fastest = int(max(_FASTEST * current, _AT_LEAST))
    if desired < least:
        return Limited(least, *_TOO_FEW)
    if desired > min(most, fastest):
        return Limited(min(most, fastest), *(_TOO_FAST_UP if most > fastest else _TOO_MANY))
    return Limited(desired, *_WITHIN)


class _Direction(NamedTuple):
    """Direction of scaling: functions that apply a policy, and that select the largest and the smallest change."""

    by_pods: Callable[[int, int], int]
    by_percent: Callable[[int, int], int]
    largest: Callable[[Sequence[int]], int]
    smallest: Callable[[Sequence[int]], int]


_ADDING: Final = _Direction(
    lambda start, value: start + value, lambda start, value: math.ceil(start * (1 + value / 100)), max, min
)
_REMOVING: Final = _Direction(
    lambda start, value: start - value, lambda start, value: int(start * (1 - value / 100)), min, max
)


def _limit(rules: HPAScalingRules, current: int, starts: Sequence[int], direction: _Direction) -> int:
    if rules.select_policy == "Disabled" or not rules.policies:
        return current

    def proposed(policy: HPAScalingPolicy, start: int) -> int:
        change = direction.by_pods if policy.type == "Pods" else direction.by_percent
        return change(start, policy.value)

    limits = [proposed(policy, start) for policy, start in zip(rules.policies, starts, strict=True)]
    return direction.smallest(limits) if rules.select_policy == "Min" else direction.largest(limits)


def _rules_up_and_down(rules: HorizontalPodAutoscalerBehavior) -> tuple[HPAScalingRules, HPAScalingRules]:
    """Return the rules for scaling up and down; the server's defaults have filled them in."""
    return rules.scale_up or HPAScalingRules(), rules.scale_down or HPAScalingRules()


def _within(changes: Sequence[_Change], cutoff: float) -> int:
    return sum(each.replicas for each in changes if each.at > cutoff)


def _store_change(changes: list[_Change], change: _Change, is_old: Callable[[_Change], bool]) -> None:
    """Store a change in place of the last expired one, or at the end."""
    for index in reversed(range(len(changes))):
        if is_old(changes[index]):
            changes[index] = change
            return
    changes.append(change)
