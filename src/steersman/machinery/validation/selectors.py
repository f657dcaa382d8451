"""Validation of labels and selectors in objects (`LabelSelector`, field selector requirements of access reviews).

Follows k8s.io/apimachinery `apis/meta/v1/validation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.validation.formats import is_qualified_name, is_valid_label_value
from steersman.machinery.validation.leaves import validate_qualified_name
from steersman.work.threads import paced

if TYPE_CHECKING:
    from steersman.api.meta.v1 import FieldSelectorRequirement, LabelSelector, LabelSelectorRequirement

_SETS: Final = ("In", "NotIn")
_UNARY: Final = ("Exists", "DoesNotExist")


class LabelSelectorOptions(Struct, frozen=True):
    """Leniencies: invalid label values that were stored before validation existed, and operators of later versions."""

    allow_invalid_label_value: bool = False
    allow_unknown_operator: bool = False


STRICT: Final = LabelSelectorOptions()


validate_label_name: Final = validate_qualified_name
"""Validates a label's key."""


def validate_labels(labels: Mapping[str, str], path: Path) -> Iterator[FieldError]:
    """Validate the keys and values of labels."""
    for key, value in paced(labels.items()):
        for message in is_qualified_name(key):
            yield field.invalid(path, key, message)
        for message in is_valid_label_value(value):
            yield field.invalid(path, value, message)


def label_selector_has_invalid_label_value(selector: LabelSelector | None) -> bool:
    """Return True if a stored selector has a label value that is now invalid: an update may then have such values, too."""
    if selector is None:
        return False
    expressions = selector.match_expressions
    return any(is_valid_label_value(value) for each in expressions for value in each.values)


def validate_label_selector(
    selector: LabelSelector | None, path: Path, options: LabelSelectorOptions = STRICT
) -> Iterator[FieldError]:
    """Validate a label selector; None is valid."""
    if selector is None:
        return
    yield from validate_labels(selector.match_labels, path / "matchLabels")
    for index, expression in enumerate(selector.match_expressions):
        yield from validate_label_selector_requirement(expression, (path / "matchExpressions")[index], options)


def validate_label_selector_requirement(
    requirement: LabelSelectorRequirement, path: Path, options: LabelSelectorOptions = STRICT
) -> Iterator[FieldError]:
    """Validate one of a selector's `matchExpressions`."""
    yield from _validate_operator(requirement, path, allow_unknown=options.allow_unknown_operator)
    yield from validate_label_name(requirement.key, path / "key")
    if options.allow_invalid_label_value:
        return
    for index, value in enumerate(requirement.values):
        for message in is_valid_label_value(value):
            yield field.invalid((path / "values")[index], value, message)


def _validate_operator(
    requirement: LabelSelectorRequirement | FieldSelectorRequirement, path: Path, *, allow_unknown: bool
) -> Iterator[FieldError]:
    """Validate that the operator exists and has the values that it needs."""
    if requirement.operator in _SETS:
        if not requirement.values:
            yield field.required(path / "values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif requirement.operator in _UNARY:
        if requirement.values:
            yield field.forbidden(path / "values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif not allow_unknown:
        yield field.invalid(path / "operator", requirement.operator, "not a valid selector operator")
