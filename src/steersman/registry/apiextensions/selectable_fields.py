"""Validation of the selectable fields of custom resources (`ValidateCustomResourceSelectableFields`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.apiextensions.v1 import SelectableField
from steersman.machinery.errors.field import FieldError, Path, duplicate, invalid, required, too_many
from steersman.registry.apiextensions.internal import PlainSchema
from steersman.schema import FieldPathError, valid_field_path

MAX_SELECTABLE_FIELDS: Final = 8
TYPES: Final = ("boolean", "integer", "string")

_WRONG_TYPE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def validate_selectable_fields(
    fields: Sequence[SelectableField], schema: PlainSchema, path: Path, *, any_number: bool
) -> Iterator[FieldError]:
    """Validate unique paths to scalars outside of the metadata. `any_number` switches off the limit of their number."""
    seen: set[str] = set()
    for index, selectable in enumerate(fields):
        here, said = path[index] / "jsonPath", selectable.json_path
        if not said:
            yield required(here)
            continue
        try:
            found = valid_field_path(said, schema, array_notation=False)
        except FieldPathError as error:
            yield invalid(here, said, f"is an invalid path: {error}")
            continue
        if found.first == "metadata":
            yield invalid(here, said, "must not point to fields in metadata")
        if found.schema is None or found.schema.get("type") not in TYPES:
            yield invalid(here, said, _WRONG_TYPE)
        text = str(found.path)
        if text in seen:
            yield duplicate(here, said)
        seen.add(text)
    if len(seen) > MAX_SELECTABLE_FIELDS and not any_number:
        yield too_many(path, len(seen), MAX_SELECTABLE_FIELDS)
