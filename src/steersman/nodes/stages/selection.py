"""Selection of an object's stage and its delay: selectors, weights, delays (kwok `pkg/utils/lifecycle`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final

from steersman.machinery.values import times
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.nodes.stages.declaration import (
    Delay,
    Requirement,
    Selector,
    Stage,
    StageError,
    requirement_of,
    source_of,
    steps_of,
)
from steersman.nodes.stages.expressions import Expressions, Found
from steersman.nodes.stages.steps import PreparedStep, prepared

_LONGEST_TEXT: Final = 64
"""Characters of a time or a duration, which is parsed for each version of its object."""
LONGEST_DELAY: Final = timedelta(days=365).total_seconds()
"""Longest delay in seconds; longer ones are cut to this."""
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9][0-9]*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ObjectSnapshot:
    """Snapshot of an object for the selection of its stage."""

    text: str
    """JSON of the object."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class PreparedStage:
    """Stage with compiled expressions and parsed templates."""

    def __init__(self, stage: Stage, selectors: Expressions) -> None:
        """Compile a stage; the expressions of its selector are added to `selectors`. Raises StageError."""
        spec = stage.spec
        self.name: Final = stage.metadata.name
        self._selector = spec.selector or Selector()
        self._requirements = tuple(
            (selectors.add(each.key), each) for each in map(requirement_of, self._selector.match_expressions)
        )
        self._values = Expressions()
        self._weight = spec.weight, self._add_expression(source_of(spec.weight_from))
        delay = spec.delay or Delay()
        self._delay = _seconds(delay.duration_milliseconds or 0), self._add_expression(source_of(delay.duration_from))
        jitter = delay.jitter_duration_milliseconds
        self._jitter = (
            None if jitter is None else _seconds(jitter),
            self._add_expression(source_of(delay.jitter_duration_from)),
        )
        self.immediate: Final = bool(spec.immediate_next_stage)
        """True if the next stage starts from the patched object, before a watch event brings it."""
        self.steps: Final[tuple[PreparedStep, ...]] = tuple(
            prepared(each, spec.resource_ref.kind) for each in steps_of(spec)
        )

    def _add_expression(self, source: str) -> int | None:
        return self._values.add(source) if source else None

    def selects(self, snapshot: ObjectSnapshot, found: Sequence[Found]) -> bool:
        """Return True if an object is in the stage. `found` are the results of the selectors' expressions."""
        selector = self._selector
        return (
            all(snapshot.labels.get(key) == value for key, value in selector.match_labels.items())
            and all(snapshot.annotations.get(key) == value for key, value in selector.match_annotations.items())
            and all(is_met(requirement, found[place]) for place, requirement in self._requirements)
        )

    def weight(self, snapshot: ObjectSnapshot) -> int | None:
        """Return the weight of the stage for an object; None if the object's value for it is no number."""
        default, place = self._weight
        return default if place is None else weight_of(self._values.evaluate(snapshot.text)[place], default)

    def delay(self, snapshot: ObjectSnapshot, now: float, random: Random) -> float:
        """Return the seconds until the stage starts. `now` is in seconds since 1970."""
        found = self._values.evaluate(snapshot.text)
        least = self._duration(self._delay, found, now)
        if least is None:
            return 0.0
        most = self._duration(self._jitter, found, now)
        if most is not None:
            least = most if most <= least else random.uniform(least, most)
        return min(max(least, 0.0), LONGEST_DELAY)

    @staticmethod
    def _duration(of: tuple[float | None, int | None], found: Sequence[Found], now: float) -> float | None:
        default, place = of
        return default if place is None else duration_of(found[place], default, now)


class Lifecycle:
    """Stages of one kind."""

    def __init__(self, random: Random) -> None:
        self.random: Final = random
        self._selectors = Expressions()
        self.stages: Final[list[PreparedStage]] = []

    def add(self, stage: Stage) -> None:
        """Add a stage; a stage without a selector selects nothing. Raises StageError if it cannot be compiled."""
        try:
            prepared_stage = PreparedStage(stage, self._selectors)
        except StageError as error:
            raise StageError(f"Stage {stage.metadata.name}: {error}") from None
        if stage.spec.selector is not None:
            self.stages.append(prepared_stage)

    def stage_of(self, snapshot: ObjectSnapshot) -> PreparedStage | None:
        """Return the stage of an object, or None; among several, a random one by their weights."""
        found = self._selectors.evaluate(snapshot.text)
        stages = [each for each in self.stages if each.selects(snapshot, found)]
        if len(stages) < 2:
            return stages[0] if stages else None
        weighed = [(each, each.weight(snapshot)) for each in stages]
        if any(weight is not None and weight > 0 for _, weight in weighed):
            likely = [(each, weight) for each, weight in weighed if weight is not None and weight > 0]
            return self.random.choices([each for each, _ in likely], [weight for _, weight in likely])[0]
        known = [each for each, weight in weighed if weight is not None]
        return self.random.choice(known or stages)


def is_met(requirement: Requirement, found: Found) -> bool:
    """Return True if an expression's results meet a requirement; a failed expression has no results."""
    match requirement.operator:
        case "Exists":
            return bool(found)
        case "DoesNotExist":
            return not found
        case "In":
            return _has_one(found, requirement.values)
        case "NotIn":
            return not _has_one(found, requirement.values)


def _has_one(found: Found, values: Sequence[str]) -> bool:
    return any(_shown(each) in values for each in found or ())


def _shown(value: object) -> str | None:
    """Return a string, boolean or whole number as text for comparison; None for any other value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int)) else None


def weight_of(found: Found, default: int) -> int | None:
    """Return the weight that was found in an object; None for text that is no number (strconv.ParseInt with base 0)."""
    if not found:
        return default
    first = found[0]
    if isinstance(first, str):
        plain = first.replace("_", "")[:40]
        if not _INTEGER.fullmatch(plain):
            return None
        octal = re.fullmatch("[+-]?0[0-7]+", plain, re.ASCII)
        return int(plain, 8 if octal else 0)
    return int(first) if isinstance(first, (int, float)) and not isinstance(first, bool) else default


def duration_of(found: Found, default: float | None, now: float) -> float | None:
    """Return the seconds of a duration, or until a time, that was found in an object; None for empty text."""
    first = found[0] if found else None
    if first == "":
        return None
    if isinstance(first, str) and len(first) <= _LONGEST_TEXT:
        try:
            return times.parse(first).timestamp() - now
        except times.TimeError:
            pass
        try:
            return parse_duration(first) / 1e9
        except DurationError:
            pass
    return default


def _seconds(milliseconds: int) -> float:
    return milliseconds / 1000
