"""Validation of managed fields and names of field managers.

Follows k8s.io/apimachinery `apis/meta/v1/validation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.go.printable import is_printable
from steersman.machinery.validation.formats import byte_length

if TYPE_CHECKING:
    from steersman.api.meta.v1 import ManagedFieldsEntry

FIELD_MANAGER_MAX_LENGTH: Final = 128
MAX_SUBRESOURCE_NAME_LENGTH: Final = 256
_OPERATIONS: Final = ("Apply", "Update")


def validate_managed_fields(entries: Sequence[ManagedFieldsEntry], path: Path) -> Iterator[FieldError]:
    """Validate the entries of `metadata.managedFields`, except for their field sets."""
    for index, entry in enumerate(entries):
        if entry.operation not in _OPERATIONS:
            yield field.invalid(path[index] / "operation", entry.operation, "must be `Apply` or `Update`")
        if entry.fields_type and entry.fields_type != "FieldsV1":
            yield field.invalid(path[index] / "fieldsType", entry.fields_type, "must be `FieldsV1`")
        manager = entry.manager
        if not (manager.isascii() and manager.isprintable()) or len(manager) > FIELD_MANAGER_MAX_LENGTH:
            yield from validate_field_manager(manager, path[index] / "manager")
        if entry.subresource and byte_length(entry.subresource) > MAX_SUBRESOURCE_NAME_LENGTH:
            yield field.too_long(path[index] / "subresource", MAX_SUBRESOURCE_NAME_LENGTH)


def validate_field_manager(manager: str, path: Path) -> Iterator[FieldError]:
    """Validate the name of a field manager: at most 128 bytes, all printable."""
    if byte_length(manager) > FIELD_MANAGER_MAX_LENGTH:
        yield field.too_long(path, FIELD_MANAGER_MAX_LENGTH)
    if is_printable(manager):
        return
    position = 0
    # quoted once, because the error of each invalid character shows the whole name
    printed = field.Verbatim(field.quote(manager))
    for char in manager:
        if not is_printable(char):
            yield field.invalid(path, printed, f"invalid character U+{ord(char):04X} (at position {position})")
        position += byte_length(char)
