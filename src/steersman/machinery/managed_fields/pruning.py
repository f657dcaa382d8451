"""Taking out of a merged object what its applier applied before and does not any more, unless others own it.

Follows structured-merge-diff `merge.Updater.prune`. Every step is done in the version that a set was written in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .field_set import EMPTY, FieldSet, difference, intersection, union
from .managers import Managed, Managers
from .merging import remove_fields
from .schema import Schema
from .typed_value import field_set, with_named_fields

Plain = dict[str, Any]
ConvertPlain = Callable[[Plain, str], tuple[Schema, Plain] | None]


def prune(merged: Plain, managers: Managers, last: Managed, api_version: str, convert: ConvertPlain) -> Plain:
    """`merged` without the fields of `last`, the applier's set before, that are in no manager's set now.

    Raises ValueError if an object cannot be converted.
    """
    found = convert(merged, last.api_version)
    if found is None:
        return merged
    schema, whole = found
    pruned = remove_fields(schema.root, whole, with_named_fields(schema.root, last.fields)) or {}
    pruned = _with_owned(whole, pruned, last.api_version, managers, convert)
    converted = convert(pruned, last.api_version)
    if converted is None:
        return merged
    kept = _named(schema, converted[1])
    gone = difference(_named(schema, whole), kept)
    lost = intersection(gone, with_named_fields(schema.root, last.fields))
    pruned = remove_fields(schema.root, whole, lost) or {}
    back = convert(pruned, api_version)
    return pruned if back is None else back[1]


def _named(schema: Schema, value: Plain) -> FieldSet:
    return with_named_fields(schema.root, field_set(schema.root, value))


def _with_owned(whole: Plain, pruned: Plain, first: str, managers: Managers, convert: ConvertPlain) -> Plain:
    """Puts back what is in any manager's set, version by version, the one that was pruned in first."""
    owned: dict[str, FieldSet] = {first: EMPTY}
    for managed in managers.values():
        owned[managed.api_version] = union(owned.get(managed.api_version, EMPTY), managed.fields)
    for api_version, fields in owned.items():
        converted, rest = convert(whole, api_version), convert(pruned, api_version)
        if converted is None or rest is None:
            continue
        schema, whole = converted
        kept = union(_named(schema, rest[1]), with_named_fields(schema.root, fields))
        pruned = remove_fields(schema.root, whole, difference(_named(schema, whole), kept)) or {}
    return pruned
