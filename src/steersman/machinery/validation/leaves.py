"""Validators of single values that many kinds have: formats, names, enumerations, ranges, immutability, uniqueness."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar

from steersman.machinery.errors.field import FieldError, Path, duplicate, invalid, not_supported, required
from steersman.machinery.validation.formats import is_dns1123_label, is_dns1123_subdomain, is_qualified_name

FIELD_IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"

V = TypeVar("V")


def validate_with(check: Callable[[V], Iterable[str]], value: V, path: Path) -> Iterable[FieldError]:
    """Validate a value by a `check` of its format, which returns messages."""
    messages = check(value)
    return [invalid(path, value, message) for message in messages] if messages else ()


def validate_name(check: Callable[[str, bool], list[str]], name: str, path: Path) -> Iterable[FieldError]:
    """Validate the name of another object by the rule for names of its kind."""
    messages = check(name, False)
    return [invalid(path, name, message) for message in messages] if messages else ()


def validate_dns1123_label(value: str, path: Path) -> Iterable[FieldError]:
    """Validate a DNS label."""
    return validate_with(is_dns1123_label, value, path)


def validate_dns1123_subdomain(value: str, path: Path) -> Iterable[FieldError]:
    """Validate a DNS subdomain."""
    return validate_with(is_dns1123_subdomain, value, path)


def validate_qualified_name(value: str, path: Path) -> Iterable[FieldError]:
    """Validate a name with an optional domain before it."""
    return validate_with(is_qualified_name, value, path)


def validate_required(check: Callable[[V], Iterable[str]], value: V, path: Path) -> Iterable[FieldError]:
    """Validate a required value by a `check` of its format."""
    return validate_with(check, value, path) if value else (required(path),)


def validate_required_name(check: Callable[[str, bool], list[str]], name: str, path: Path) -> Iterable[FieldError]:
    """Validate the required name of another object by the rule for names of its kind."""
    return validate_name(check, name, path) if name else (required(path),)


def validate_supported(value: Any, supported: Collection[Any], path: Path) -> Iterable[FieldError]:
    """Validate a value of an enumeration."""
    return () if value in supported else (not_supported(path, value, supported),)


def validate_choice(value: Any, supported: Collection[Any], path: Path) -> Iterable[FieldError]:
    """Validate a required value of an enumeration."""
    return validate_supported(value, supported, path) if value else (required(path),)


def validate_nonnegative(value: int, path: Path) -> Iterable[FieldError]:
    """Validate a number that may not be below 0."""
    return (invalid(path, value, NOT_NEGATIVE),) if value < 0 else ()


def validate_immutable(new: Any, old: Any, path: Path) -> Iterable[FieldError]:
    """Validate a field that an update may not change; an empty list or map counts as unset."""
    if new == old or (_is_empty(new) and _is_empty(old)):
        return ()
    return (invalid(path, None if _is_empty(new) else new, FIELD_IMMUTABLE),)


def validate_unique(value: Any, seen: set[Any], path: Path) -> Iterable[FieldError]:
    """Validate a value that may occur once in a list, and add it to the values `seen` before it."""
    if value in seen:
        return (duplicate(path, value),)
    seen.add(value)
    return ()


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple | dict) and not value)
