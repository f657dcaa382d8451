"""Fast validation with a yes or no answer. Nearly all values are valid, so this is tried first.

`validation_errors` finds the errors of invalid values.
"""

from __future__ import annotations

from typing import Any

from steersman.work.threads import paced

from .equality import as_key, same
from .formats import FORMATS, normalized
from .nodes import BITS, NULLABLE, Checks, Node
from .numbers import (
    fits,
    is_json_integer,
    maximum_text,
    minimum_text,
    multiple_text,
    native,
    number_type,
    to_int64,
)
from .patterns import matches


def is_valid(node: Node, value: Any) -> bool:
    """Return True if a value is valid by the node, including all its parts."""
    kind = value.__class__
    if value is None:
        is_free = not node.types or node.traits & NULLABLE
        return bool(is_free) and (node.checks is None or node.checks.enum is None)
    if not node.mask & BITS[kind]:
        return False
    checks = node.checks
    if checks is not None and checks.has_junctors and not _is_one_of_junctors(checks, value):
        return False
    if kind is str:
        return (not node.format or _has_format(node.format, value)) and (checks is None or _accepts_text(checks, value))
    if kind is dict:
        return (checks is None or _accepts_members(checks, value)) and _accepts_object(node, value)
    if kind is list:
        return (checks is None or _accepts_items(checks, value)) and _accepts_list(node, value)
    if kind is bool:
        return checks is None or checks.enum is None or is_in(checks, value)
    bounds = node.bounds
    if kind is int and bounds is not None:
        return bool(bounds[0] <= value <= bounds[1])
    return _accepts_number(node, checks, value)


def _accepts_object(node: Node, value: dict[str, Any]) -> bool:
    properties, additional = node.properties, node.additional
    if additional is False:
        return all(name in properties and is_valid(properties[name], item) for name, item in value.items())
    others = additional if isinstance(additional, Node) else None
    if not properties and others is None:
        return True
    find = properties.get
    for name, item in paced(value.items()):
        child = find(name, others)
        if child is None or item.__class__ is child.sure:
            continue
        if not is_valid(child, item):
            return False
    return True


def _accepts_list(node: Node, value: list[Any]) -> bool:
    child = node.items
    if child is None:
        return True
    sure = child.sure
    for item in paced(value):
        if item.__class__ is sure or is_valid(child, item):
            continue
        return False
    return True


def _is_one_of_junctors(checks: Checks, value: Any) -> bool:
    """Return True if a value is valid by allOf, anyOf, oneOf and not."""
    if checks.any_of and not any(is_valid(each, value) for each in checks.any_of):
        return False
    if checks.one_of:
        count = 0
        for each in checks.one_of:
            count += is_valid(each, value)
            if count > 1:
                return False
        if not count:
            return False
    if checks.all_of and not all(is_valid(each, value) for each in checks.all_of):
        return False
    return checks.negated is None or not is_valid(checks.negated, value)


def _accepts_text(checks: Checks, value: str) -> bool:
    if checks.max_length is not None and len(value) > checks.max_length:
        return False
    if checks.min_length is not None and len(value) < checks.min_length:
        return False
    if checks.pattern and not has_pattern(checks.pattern, value):
        return False
    return checks.names is None or value in checks.names


def has_pattern(pattern: str, value: str) -> bool:
    """Return True if the pattern is found in a text; False for a malformed pattern."""
    try:
        return matches(pattern, value)
    except ValueError:
        return False


def _has_format(format: str, value: str) -> bool:
    check = FORMATS.get(normalized(format))
    return check is None or check(value)


def _accepts_members(checks: Checks, value: dict[str, Any]) -> bool:
    if checks.max_properties is not None and len(value) > checks.max_properties:
        return False
    if checks.min_properties is not None and len(value) < checks.min_properties:
        return False
    for name in checks.required:
        if name not in value:
            return False
    return checks.enum is None or is_in(checks, value)


def _accepts_items(checks: Checks, value: list[Any]) -> bool:
    if checks.max_items is not None and len(value) > checks.max_items:
        return False
    if checks.min_items is not None and len(value) < checks.min_items:
        return False
    if checks.unique_items and not are_unique(value):
        return False
    return checks.enum is None or is_in(checks, value)


def are_unique(value: list[Any]) -> bool:
    """Return True if a list has no repeated items."""
    return len({as_key(item) for item in paced(value)}) == len(value)


def _accepts_number(node: Node, checks: Checks | None, value: int | float) -> bool:
    value = native(value)
    if node.types and "number" not in node.types and value.__class__ is float and not is_json_integer(value):
        return False
    kind, format = number_type(node)
    if kind and not fits(value, kind, format):
        return False
    if checks is None:
        return True
    if checks.multiple_of is not None:
        fitting = fits(checks.multiple_of, kind, format)
        if not fitting or multiple_text(value, checks.multiple_of, fitting, ""):
            return False
    if checks.maximum is not None:
        fitting = fits(checks.maximum, kind, format)
        if not fitting or maximum_text(value, checks, fitting, ""):
            return False
    if checks.minimum is not None:
        fitting = fits(checks.minimum, kind, format)
        if not fitting or minimum_text(value, checks, fitting, ""):
            return False
    return checks.enum is None or is_in(checks, value)


def is_in(checks: Checks, value: Any) -> bool:
    """Return True if a value is in an enumeration, after Go's conversion to the type of the allowed value.

    So 1.5 counts as 1 where 1 is allowed, and 65 as the text "A".
    """
    assert checks.enum is not None
    return any(_is_enum_value(each, value) for each in checks.enum)


def _is_enum_value(allowed: Any, value: Any) -> bool:
    if allowed is None:
        return False
    kind = value.__class__
    if kind is allowed.__class__:
        return same(value, allowed)
    if kind is int:
        if allowed.__class__ is float:
            return bool(float(value) == allowed)
        return allowed.__class__ is str and allowed == _rune(value)
    return kind is float and allowed.__class__ is int and to_int64(value) == allowed


def _rune(value: int) -> str:
    is_character = 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000
    return chr(value) if is_character else "\N{REPLACEMENT CHARACTER}"
