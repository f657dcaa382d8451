"""Rules for single values that many kinds have: formats, names, and enumerations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required

V = TypeVar("V")


def validate_with(check: Callable[[V], Iterable[str]], value: V, path: Path) -> Iterable[FieldError]:
    """Validate a value by what `check` says of its format."""
    messages = check(value)
    return [invalid(path, value, message) for message in messages] if messages else ()


def validate_name(check: Callable[[str, bool], list[str]], name: str, path: Path) -> Iterable[FieldError]:
    """Validate the name of another object by the rule for names of its kind."""
    messages = check(name, False)
    return [invalid(path, name, message) for message in messages] if messages else ()


def validate_required(check: Callable[[V], Iterable[str]], value: V, path: Path) -> Iterable[FieldError]:
    """Validate a value that must be given, by what `check` says of its format."""
    return validate_with(check, value, path) if value else (required(path),)


def validate_required_name(check: Callable[[str, bool], list[str]], name: str, path: Path) -> Iterable[FieldError]:
    """Validate the name of another object that must be given, by the rule for names of its kind."""
    return validate_name(check, name, path) if name else (required(path),)


def validate_supported(value: Any, supported: Collection[Any], path: Path) -> Iterable[FieldError]:
    """Validate a value of an enumeration."""
    return () if value in supported else (not_supported(path, value, supported),)


def validate_choice(value: Any, supported: Collection[Any], path: Path) -> Iterable[FieldError]:
    """Validate a value of an enumeration that must be given."""
    return validate_supported(value, supported, path) if value else (required(path),)
