"""Validation of pod counts in specs and statuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.errors.go_numbers import atoi
from steersman.machinery.validation.formats import is_valid_percent
from steersman.machinery.validation.leaves import validate_nonnegative, validate_with

MORE_THAN_REPLICAS: Final = "cannot be greater than status.replicas"


def validate_int_or_percent(value: int | str | None, path: Path) -> Iterator[FieldError]:
    """Validate a number or percentage of pods."""
    if isinstance(value, str):
        yield from validate_with(is_valid_percent, value, path)
    else:
        yield from validate_nonnegative(value or 0, path)


def _percent(value: int | str | None) -> int | None:
    if not isinstance(value, str) or is_valid_percent(value):
        return None
    return atoi(value[:-1])


def int_or_percent_value(value: int | str | None) -> int:
    """Return the number of a number or percentage, 0 if it cannot be parsed."""
    percent = _percent(value)
    if percent is not None:
        return percent
    if isinstance(value, str):
        return atoi(value)
    return value or 0


def validate_at_most_all(value: int | str | None, path: Path) -> Iterator[FieldError]:
    """Validate that a percentage is at most 100%."""
    percent = _percent(value)
    if percent is not None and percent > 100:
        yield invalid(path, value, "must not be greater than 100%")


def validate_counters(status: Any, fields: Iterable[tuple[str, str]], path: Path) -> Iterator[FieldError]:
    """Validate that counters are not negative; `fields` has (attribute, JSON name), and missing counters are skipped."""
    for attribute, name in fields:
        value = getattr(status, attribute)
        if value is not None:
            yield from validate_nonnegative(value, path / name)


def validate_at_most_replicas(status: Any, fields: Iterable[tuple[str, str]], path: Path) -> Iterator[FieldError]:
    """Validate that counters do not exceed the number of replicas."""
    for attribute, name in fields:
        value = getattr(status, attribute)
        if value > status.replicas:
            yield invalid(path / name, value, MORE_THAN_REPLICAS)


def validate_available(status: Any, path: Path, ready: str = "readyReplicas") -> Iterator[FieldError]:
    """Validate that no more replicas are available than ready; `ready` is the name in the message."""
    if status.available_replicas > status.ready_replicas:
        detail = f"cannot be greater than {ready}"
        yield invalid(path / "availableReplicas", status.available_replicas, detail)


def validate_collision_count(new: Any, old: Any, path: Path) -> Iterator[FieldError]:
    """Validate that the count of hash collisions does not decrease."""
    if old.collision_count is None:
        return
    if new.collision_count is None or new.collision_count < old.collision_count:
        yield invalid(path / "collisionCount", new.collision_count or 0, "cannot be decremented")
