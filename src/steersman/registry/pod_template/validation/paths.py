"""File paths and names in pod specs: what they may look like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.formats import (
    is_dns1123_label,
    is_dns1123_subdomain,
    is_qualified_name,
    is_valid_port_name,
    is_valid_port_num,
)

FILE_MODE_ERROR: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_with(check: Callable[[str], list[str]], value: str, path: Path) -> Iterator[FieldError]:
    """An error for each message that `check` has on `value`."""
    for message in check(value):
        yield invalid(path, value, message)


def validate_dns1123_label(value: str, path: Path) -> Iterator[FieldError]:
    """A DNS label."""
    return validate_with(is_dns1123_label, value, path)


def validate_dns1123_subdomain(value: str, path: Path) -> Iterator[FieldError]:
    """A DNS name."""
    return validate_with(is_dns1123_subdomain, value, path)


def validate_qualified_name(value: str, path: Path) -> Iterator[FieldError]:
    """A name with an optional prefix, as label keys are."""
    return validate_with(is_qualified_name, value, path)


def validate_nonnegative(value: int, path: Path) -> Iterator[FieldError]:
    """A number that is not below 0."""
    if value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def validate_port_number_or_name(port: int | str, path: Path) -> Iterator[FieldError]:
    """A port given as a number, or by the name it has in the container."""
    messages = is_valid_port_num(port) if isinstance(port, int) else is_valid_port_name(port)
    for message in messages:
        yield invalid(path, port, message)


def validate_file_mode(mode: int | None, path: Path) -> Iterator[FieldError]:
    """Unix permission bits."""
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(path, mode, FILE_MODE_ERROR)


def validate_no_backsteps(target: str, path: Path) -> Iterator[FieldError]:
    """A path none of whose elements is `..`."""
    if ".." in target and ".." in target.split("/"):
        yield invalid(path, target, "must not contain '..'")


def validate_descending_path(target: str, path: Path) -> Iterator[FieldError]:
    """A relative path that stays below where it starts."""
    if target.startswith("/"):
        yield invalid(path, target, "must be a relative path")
    yield from validate_no_backsteps(target, path)


def validate_local_path(target: str, path: Path) -> Iterator[FieldError]:
    """A descending path that does not start with `..`, which is reserved."""
    yield from validate_descending_path(target, path)
    if target.startswith("..") and not target.startswith("../"):
        yield invalid(path, target, "must not start with '..'")
