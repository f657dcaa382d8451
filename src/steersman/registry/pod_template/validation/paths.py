"""Validation of file paths and names in pod specs. These rules return lists, as they rarely find errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.formats import (
    is_valid_port_number_or_name,
)

FILE_MODE_ERROR: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_port_number_or_name(port: int | str, path: Path) -> Iterable[FieldError]:
    """Validate a port given as a number or as a container port's name."""
    return [invalid(path, port, message) for message in is_valid_port_number_or_name(port)]


def validate_file_mode(mode: int | None, path: Path) -> Iterable[FieldError]:
    """Validate Unix permission bits."""
    return () if mode is None or 0 <= mode <= 0o777 else [invalid(path, mode, FILE_MODE_ERROR)]


def validate_no_backsteps(target: str, path: Path) -> Iterable[FieldError]:
    """Validate that no element of a path is `..`."""
    if ".." in target and ".." in target.split("/"):
        return [invalid(path, target, "must not contain '..'")]
    return ()


def validate_descending_path(target: str, path: Path) -> Iterable[FieldError]:
    """Validate a relative path without `..`."""
    if target.startswith("/"):
        return [invalid(path, target, "must be a relative path"), *validate_no_backsteps(target, path)]
    return validate_no_backsteps(target, path)


def validate_local_path(target: str, path: Path) -> Iterable[FieldError]:
    """Validate a descending path whose name does not begin with `..`, which is reserved."""
    if target.startswith("..") and not target.startswith("../"):
        return [*validate_descending_path(target, path), invalid(path, target, "must not start with '..'")]
    return validate_descending_path(target, path)
