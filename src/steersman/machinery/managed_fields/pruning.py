"""Removal of fields that an applier applied earlier and no longer does, unless another manager owns them.

Follows structured-merge-diff `merge.Updater.prune`. Each step happens in the version in which a set was written.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from .field_set import FieldSet, difference, intersection, union, union_of
from .managers import Managed, Managers
from .merging import remove_fields
from .schema import Schema
from .typed_value import field_set, with_named_fields

Plain = dict[str, Any]
ConvertPlain = Callable[[Plain, str], tuple[Schema, Plain] | None]


def prune(
    merged: Plain, managers: Managers, last: Managed, fields: FieldSet, api_version: str, convert: ConvertPlain
) -> Plain:
    """Return `merged` without the fields of `last`, the applier's earlier set, that are in no manager's set now.

    `fields` is the applier's present set, which is among those of `managers`. Raises ValueError if an object cannot be
    converted.
    """
    if not difference(last.fields, fields) and are_all_in(api_version, last, *managers.values()):
        return merged  # most applies repeat all earlier fields
    found = convert(merged, last.api_version)
    if found is None:
        return merged
    schema, whole = found
    mentioned = with_named_fields(schema.root, last.fields)
    everything = _named(schema, whole)
    pruned = remove_fields(schema.root, whole, mentioned) or {}
    pruned = _with_owned(whole, everything, pruned, last.api_version, managers, convert)
    converted = convert(pruned, last.api_version)
    if converted is None:
        return merged
    gone = difference(everything, _named(schema, converted[1]))
    pruned = remove_fields(schema.root, whole, intersection(gone, mentioned)) or {}
    back = convert(pruned, api_version)
    return pruned if back is None else back[1]


_version: Final = attrgetter("api_version")


def are_all_in(api_version: str, *managers: Managed) -> bool:
    """Return True if all managers wrote in this version."""
    return {api_version}.issuperset(map(_version, managers))


def _named(schema: Schema, value: Plain) -> FieldSet:
    return with_named_fields(schema.root, field_set(schema.root, value))


def _with_owned(
    whole: Plain, everything: FieldSet, pruned: Plain, first: str, managers: Managers, convert: ConvertPlain
) -> Plain:
    """Restore the fields that any manager owns, version by version, beginning with the version that was pruned.

    `everything` are the fields of `whole`, which is in that version.
    """
    owned: dict[str, list[FieldSet]] = {first: []}
    for managed in managers.values():
        owned.setdefault(managed.api_version, []).append(managed.fields)
    for api_version, sets in owned.items():
        converted, rest = convert(whole, api_version), convert(pruned, api_version)
        if converted is None or rest is None:
            continue
        schema, whole = converted
        if api_version != first:
            everything = _named(schema, whole)
        kept = union(_named(schema, rest[1]), with_named_fields(schema.root, union_of(sets)))
        pruned = remove_fields(schema.root, whole, difference(everything, kept)) or {}
    return pruned
