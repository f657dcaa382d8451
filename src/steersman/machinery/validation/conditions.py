"""Validation of conditions in an object's status (`meta/v1 Condition`).

Follows k8s.io/apimachinery `apis/meta/v1/validation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.validation.formats import byte_length, characters, regex_error
from steersman.machinery.validation.selectors import validate_label_name

if TYPE_CHECKING:
    from steersman.api.meta.v1 import Condition

MAX_REASON_LENGTH: Final = 1024
MAX_MESSAGE_LENGTH: Final = 32 * 1024

_STATUSES: Final = ("False", "True", "Unknown")
REASON_PATTERN: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason: Final = characters(REASON_PATTERN)
_REASON_ERROR: Final = regex_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    REASON_PATTERN,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def validate_conditions(conditions: Sequence[Condition], path: Path) -> Iterator[FieldError]:
    """Validate conditions, whose types must be unique."""
    seen = set()
    for index, condition in enumerate(conditions):
        if condition.type in seen:
            yield field.duplicate(path[index] / "type", condition.type)
        seen.add(condition.type)
        yield from validate_condition(condition, path[index])


def validate_condition(condition: Condition, path: Path) -> Iterator[FieldError]:
    """Validate a condition."""
    yield from validate_label_name(condition.type, path / "type")
    if condition.status not in _STATUSES:
        yield field.not_supported(path / "status", condition.status, _STATUSES)
    if condition.observed_generation < 0:
        text = "must be greater than or equal to zero"
        yield field.invalid(path / "observedGeneration", condition.observed_generation, text)
    if not condition.last_transition_time:
        yield field.required(path / "lastTransitionTime")
    if not condition.reason:
        yield field.required(path / "reason")
    else:
        if not _is_reason(condition.reason):
            yield field.invalid(path / "reason", condition.reason, _REASON_ERROR)
        if byte_length(condition.reason) > MAX_REASON_LENGTH:
            yield field.too_long(path / "reason", MAX_REASON_LENGTH)
    if byte_length(condition.message) > MAX_MESSAGE_LENGTH:
        yield field.too_long(path / "message", MAX_MESSAGE_LENGTH)
