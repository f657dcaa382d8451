"""Validation of members of a version, or of all versions: warnings, subresources, printer columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.apiextensions.v1 import (
    CustomResourceColumnDefinition,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
)
from steersman.machinery.errors.field import FieldError, Path, Verbatim, go_json, invalid, required
from steersman.machinery.go.printable import is_printable
from steersman.machinery.json_path.cells import TYPES
from steersman.machinery.validation.formats import byte_length

COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
NOT_SIMPLE: Final = "must be a simple json path starting with ."
MAX_WARNING_LENGTH: Final = 256
"""Bytes of a deprecation warning."""


def validate_deprecation(version: CustomResourceDefinitionVersion, path: Path) -> Iterator[FieldError]:
    """Validate the warning of a deprecated version."""
    text = version.deprecation_warning
    if text is not None:
        for message in _warning_errors(text, deprecated=version.deprecated):
            yield invalid(path / "deprecationWarning", _pointed_at(text), message)


def _pointed_at(text: str) -> Verbatim:
    """Return the text of a Go string pointer, which is printed as JSON and so has other escapes than a quoted Go
    string.
    """
    return Verbatim(go_json(text))


def _warning_errors(text: str, *, deprecated: bool) -> Iterator[str]:
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if byte_length(text) > MAX_WARNING_LENGTH:
        yield f"must be <= {MAX_WARNING_LENGTH} characters long"
    if not text:
        yield "must not be an empty string"
    if not is_printable(text):
        index = next(index for index, char in enumerate(text) if not is_printable(char))
        at = byte_length(text[:index])
        yield f"must only contain printable UTF-8 characters; non-printable character found at index {at}"


def validate_subresources(subresources: CustomResourceSubresources | None, path: Path) -> Iterator[FieldError]:
    """Validate the paths of a scale subresource."""
    scale = None if subresources is None else subresources.scale
    if scale is None:
        return
    for text, member, where in (
        (scale.spec_replicas_path, "scale.specReplicasPath", ".spec"),
        (scale.status_replicas_path, "scale.statusReplicasPath", ".status"),
    ):
        if not text:
            yield required(path / member)
        else:
            yield from _validate_path_under(text, path / member, (where,), where)
    if scale.label_selector_path:
        below = (".spec", ".status")
        for error in _validate_path_under(
            scale.label_selector_path, path / "scale.labelSelectorPath", below, "either .spec or .status"
        ):
            is_below = error.detail != NOT_SIMPLE
            yield replace(error, value=_pointed_at(scale.label_selector_path)) if is_below else error


def _validate_path_under(text: str, path: Path, below: tuple[str, ...], shown: str) -> Iterator[FieldError]:
    if not text.startswith("."):
        yield invalid(path, text, NOT_SIMPLE)
    elif not text.startswith(tuple(f"{each}." for each in below)):
        yield invalid(path, text, f"should be a json path under {shown}")


def validate_column(column: CustomResourceColumnDefinition, path: Path) -> Iterator[FieldError]:
    """Validate a printer column; only the first character of its path is checked."""
    if not column.name:
        yield required(path / "name")
    if column.type not in TYPES:
        detail = f"must be one of {','.join(TYPES)}"
        yield invalid(path / "type", column.type, detail) if column.type else required(path / "type", detail)
    if column.format and column.format not in COLUMN_FORMATS:
        yield invalid(path / "format", column.format, f"must be one of {','.join(COLUMN_FORMATS)}")
    if not column.json_path:
        yield required(path / "JSONPath")
    elif not column.json_path.startswith("."):
        yield invalid(path / "JSONPath", column.json_path, NOT_SIMPLE)
