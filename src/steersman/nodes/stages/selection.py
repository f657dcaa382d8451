"""Selection of an object's stage and its delay: selectors, weights, delays (kwok `pkg/utils/lifecycle`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from random import Random
from typing import Any, Final

import msgspec

from steersman.machinery.values import times
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.nodes.stages.conditions import Condition, Conditions, Failed
from steersman.nodes.stages.declaration import (
    Delay,
    ExpressionFrom,
    Requirement,
    Selector,
    Stage,
    StageError,
    condition_of,
    requirement_of,
    source_of,
    steps_of,
)
from steersman.nodes.stages.expressions import Expressions, Found
from steersman.nodes.stages.steps import PreparedStep, prepared
from steersman.nodes.stages.typed_values import typed
from steersman.work.patterns import late_pattern

_LONGEST_TEXT: Final = 64
"""Characters of a time or a duration, which is parsed for each version of its object."""
LONGEST_DELAY: Final = timedelta(days=365).total_seconds()
"""Longest delay in seconds; longer ones are cut to this."""
_MOST_WEIGHT: Final = 2**63 - 1
_INTEGER: Final = late_pattern(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0(?:[oO]?[0-7]+)?|[1-9][0-9]*)", re.ASCII)


@dataclass(frozen=True)
class ObjectSnapshot:
    """Snapshot of an object for the selection of its stage."""

    text: str
    """JSON of the object."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    struct: msgspec.Struct | None = None
    """Pod or Node, whose fields have types in expressions of CEL."""

    @cached_property
    def variables(self) -> Mapping[str, Any]:
        """Variables of expressions of CEL."""
        return {"self": msgspec.json.decode(self.text) if self.struct is None else typed(self.struct)}


@dataclass(frozen=True, slots=True)
class _Source:
    """Value from an object, by an expression of jq or of CEL."""

    place: int | None = None
    """Index of the jq expression."""
    condition: Condition | None = None


class PreparedStage:
    """Stage with compiled expressions and parsed templates."""

    def __init__(self, stage: Stage, selectors: Expressions, conditions: Conditions) -> None:
        """Compile a stage; the jq expressions of its selector are added to `selectors`. Raises StageError."""
        spec = stage.spec
        self.declaration: Final = stage
        self.name: Final = stage.metadata.name
        self._selector = spec.selector or Selector()
        self._conditions = conditions
        expressions = self._selector.match_expressions
        self._requirements = tuple(
            (selectors.add(each.key), each) for each in map(requirement_of, (e for e in expressions if e.cel is None))
        )
        self._matching = tuple(conditions.compile(condition_of(each)) for each in expressions if each.cel is not None)
        self._values = Expressions()
        self._weight = spec.weight, self._source(spec.weight_from)
        delay = spec.delay or Delay()
        self._delay = _seconds(delay.duration_milliseconds or 0), self._source(delay.duration_from)
        jitter = delay.jitter_duration_milliseconds
        self._jitter = None if jitter is None else _seconds(jitter), self._source(delay.jitter_duration_from)
        self.immediate: Final = bool(spec.immediate_next_stage)
        """True if the next stage starts from the patched object, before a watch event brings it."""
        self.steps: Final[tuple[PreparedStep, ...]] = tuple(
            prepared(each, spec.resource_ref) for each in steps_of(spec)
        )

    def _source(self, source: ExpressionFrom | None) -> _Source:
        if text := condition_of(source):
            return _Source(condition=self._conditions.compile(text))
        path = source_of(source)
        return _Source(self._values.add(path) if path else None)

    def selects(self, snapshot: ObjectSnapshot, found: Sequence[Found]) -> bool:
        """Return True if an object is in the stage. `found` are the results of the selectors' jq expressions.

        A failing expression selects nothing.
        """
        selector = self._selector
        return (
            all(snapshot.labels.get(key) == value for key, value in selector.match_labels.items())
            and all(snapshot.annotations.get(key) == value for key, value in selector.match_annotations.items())
            and all(is_met(requirement, found[place]) for place, requirement in self._requirements)
            and all(_holds(each, snapshot) for each in self._matching)
        )

    def weight(self, snapshot: ObjectSnapshot) -> int | None:
        """Return the weight of the stage for an object; None if the object's value for it is no number."""
        default, source = self._weight
        if source.condition is not None:
            try:
                return _weight(source.condition.whole(snapshot.variables))
            except Failed:
                return None
        if source.place is None:
            return default
        return weight_of(self._values.evaluate(snapshot.text)[source.place], default)

    def delay(self, snapshot: ObjectSnapshot, now: float, random: Random) -> float:
        """Return the seconds until the stage starts. `now` is in seconds since 1970."""
        found = self._values.evaluate(snapshot.text)
        least = _duration(self._delay, snapshot, found, now)
        if least is None:
            return 0.0
        most = _duration(self._jitter, snapshot, found, now)
        if most is not None:
            least = most if most <= least else random.uniform(least, most)
        return min(max(least, 0.0), LONGEST_DELAY)


def _holds(condition: Condition, snapshot: ObjectSnapshot) -> bool:
    try:
        return condition.truth(snapshot.variables)
    except Failed:
        return False


def _duration(
    of: tuple[float | None, _Source], snapshot: ObjectSnapshot, found: Sequence[Found], now: float
) -> float | None:
    """Return the seconds of a duration; None if an expression has no value."""
    default, source = of
    if source.condition is not None:
        try:
            return source.condition.seconds(snapshot.variables)
        except Failed:
            return None
    return default if source.place is None else duration_of(found[source.place], default, now)


class Lifecycle:
    """Stages of one kind."""

    def __init__(self, random: Random, conditions: Conditions) -> None:
        self.random: Final = random
        self._conditions = conditions
        self._selectors = Expressions()
        self.stages: Final[list[PreparedStage]] = []

    def add(self, stage: Stage) -> None:
        """Add a stage; a stage without a selector selects nothing. Raises StageError if it cannot be compiled."""
        try:
            prepared_stage = PreparedStage(stage, self._selectors, self._conditions)
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
        return _weight(int(plain, 8 if octal else 0))
    if isinstance(first, bool) or not isinstance(first, (int, float)) or first != first:
        return default
    return _weight(first)


def _weight(number: float) -> int:
    """Return a number as a weight of 64 bits, as sums of weights are floats."""
    return int(max(-_MOST_WEIGHT, min(number, _MOST_WEIGHT)))


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
