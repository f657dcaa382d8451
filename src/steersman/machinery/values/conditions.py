"""Conditions of statuses: how one is found, read and set (apimachinery `pkg/api/meta`, conditions.go)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from steersman.machinery.values import times


class Typed(Protocol):
    """A condition as far as it is read."""

    @property
    def type(self) -> str: ...

    @property
    def status(self) -> str: ...


class Timed(Typed, Protocol):
    """A condition as far as it is set."""

    last_transition_time: str | None


C = TypeVar("C", bound=Typed)
T = TypeVar("T", bound=Timed)


def find_condition(conditions: Iterable[C], type_: str) -> C | None:
    """Return the first condition of a type."""
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
    """Return `new` with the time of the transition to its status.

    That is the time of the first of `conditions` of its type if that has the same status, otherwise the time that `new`
    has already, or that of the clock.
    """
    old = find_condition(conditions, new.type)
    if old is not None and old.status == new.status:
        new.last_transition_time = old.last_transition_time
    elif new.last_transition_time is None:
        new.last_transition_time = times.now()
    return new


def with_condition(conditions: Iterable[T], new: T) -> list[T]:
    """Return the conditions with `new` in the place of the first of its type, or at the end, timed by
    `time_condition`."""
    changed = list(conditions)
    time_condition(new, changed)
    for index, each in enumerate(changed):
        if each.type == new.type:
            changed[index] = new
            return changed
    return [*changed, new]
