"""Conditions of statuses: search, test and update (apimachinery `pkg/api/meta`, conditions.go)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from steersman.machinery.values import times


class Typed(Protocol):
    """The fields of a condition that reading needs."""

    @property
    def type(self) -> str:
        """Return the type of the condition, e.g. Ready."""
        ...

    @property
    def status(self) -> str:
        """Return True, False or Unknown, as text."""
        ...


class Timed(Typed, Protocol):
    """The fields of a condition that updating needs."""

    last_transition_time: str | None


C = TypeVar("C", bound=Typed)
T = TypeVar("T", bound=Timed)


def find_condition(conditions: Iterable[C], type_: str) -> C | None:
    """Return the first condition of a type, or None."""
    for each in conditions:
        if each.type == type_:
            return each
    return None


def is_condition_true(conditions: Iterable[Typed], type_: str) -> bool:
    """Return True if the first condition of a type has the status True."""
    for each in conditions:
        if each.type == type_:
            return each.status == "True"
    return False


def without_conditions(conditions: Iterable[C], *types: str) -> list[C]:
    """Return the conditions of other types."""
    return [each for each in conditions if each.type not in types]


def time_condition(new: T, conditions: Iterable[T]) -> T:
    """Set the `lastTransitionTime` of `new` and return `new`.

    If the first of `conditions` of the same type has the same status, its time is kept. Otherwise a time that `new`
    already has is kept, and a missing time becomes the present.
    """
    old = find_condition(conditions, new.type)
    if old is not None and old.status == new.status:
        new.last_transition_time = old.last_transition_time
    elif new.last_transition_time is None:
        new.last_transition_time = times.now()
    return new


def with_condition(conditions: Iterable[T], new: T) -> list[T]:
    """Return `conditions` with `new` in the place of the first condition of its type, or at the end.

    The transition time of `new` is set by `time_condition`.
    """
    changed = list(conditions)
    time_condition(new, changed)
    for index, each in enumerate(changed):
        if each.type == new.type:
            changed[index] = new
            return changed
    return [*changed, new]
