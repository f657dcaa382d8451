"""File paths and names in pod specs: what they may look like. Rules this small give a list, as few find anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.formats import (
    is_dns1123_label,
    is_dns1123_subdomain,
    is_qualified_name,
    is_valid_port_name,
    is_valid_port_num,
)
from steersman.machinery.validation.leaves import validate_with

FILE_MODE_ERROR: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_dns1123_label(value: str, path: Path) -> Iterable[FieldError]:
    """A DNS label."""
    return validate_with(is_dns1123_label, value, path)


def validate_dns1123_subdomain(value: str, path: Path) -> Iterable[FieldError]:
    """A DNS name."""
    return validate_with(is_dns1123_subdomain, value, path)


def validate_qualified_name(value: str, path: Path) -> Iterable[FieldError]:
    """A name with an optional prefix, as label keys are."""
    return validate_with(is_qualified_name, value, path)


def validate_nonnegative(value: int, path: Path) -> Iterable[FieldError]:
    """A number that is not below 0."""
    return [invalid(path, value, "must be greater than or equal to 0")] if value < 0 else ()


def validate_port_number_or_name(port: int | str, path: Path) -> Iterable[FieldError]:
    """A port given as a number, or by the name it has in the container."""
    return [invalid(path, port, message) for message in is_valid_port_number_or_name(port)]


def is_valid_port_number_or_name(port: int | str) -> list[str]:
    """What is wrong with such a port."""
    return is_valid_port_num(port) if isinstance(port, int) else is_valid_port_name(port)


def validate_file_mode(mode: int | None, path: Path) -> Iterable[FieldError]:
    """Unix permission bits."""
    return () if mode is None or 0 <= mode <= 0o777 else [invalid(path, mode, FILE_MODE_ERROR)]


def validate_no_backsteps(target: str, path: Path) -> Iterable[FieldError]:
    """A path none of whose elements is `..`."""
    if ".." in target and ".." in target.split("/"):
        return [invalid(path, target, "must not contain '..'")]
    return ()


def validate_descending_path(target: str, path: Path) -> Iterable[FieldError]:
    """A relative path that stays below where it starts."""
    if target.startswith("/"):
        return [invalid(path, target, "must be a relative path"), *validate_no_backsteps(target, path)]
    return validate_no_backsteps(target, path)


def validate_local_path(target: str, path: Path) -> Iterable[FieldError]:
    """A descending path that does not start with `..`, which is reserved."""
    if target.startswith("..") and not target.startswith("../"):
        return [*validate_descending_path(target, path), invalid(path, target, "must not start with '..'")]
    return validate_descending_path(target, path)
