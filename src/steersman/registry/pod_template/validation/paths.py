"""File paths and names in pod specs: what they may look like. Rules this small give a list, as few find anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.formats import (
    is_valid_port_number_or_name,
)

FILE_MODE_ERROR: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_port_number_or_name(port: int | str, path: Path) -> Iterable[FieldError]:
    """A port given as a number, or by the name it has in the container."""
    return [invalid(path, port, message) for message in is_valid_port_number_or_name(port)]


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
