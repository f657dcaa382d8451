"""Objects in a strategic merge patch, merged field by field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from steersman.machinery.codec.go_types import GoType
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.go_print import go_text, go_type, go_value
from steersman.machinery.errors.status import StatusError
from steersman.work.offloading import expect_offloading

from .fields import MERGE, REPLACE, Field, list_field, map_field
from .lists import (
    PATCH,
    SET_ORDER,
    check_order,
    element_type,
    identity,
    identity_in_order,
    in_order,
    no_merge_key,
    parted,
    unique,
    without,
    wrong_type,
)

RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"

_LIST: Final = go_type([])

Map = dict[str, Any]


def apply(document: Map, patch: Map | None, type_: GoType) -> Map:
    """Return the document after the patch. Both arguments are changed and share parts with the result.

    Afterwards `patch` has neither the directives that were followed nor nulls; upstream shows this rest in later
    errors. Raises StatusError as kube-apiserver: 400 for malformed directives, 422 for lists of lists, 500 for all
    other errors.
    """
    expect_offloading()
    try:
        return _merge_maps(document, patch or {}, type_)
    except RecursionError:
        raise errors.bad_request("the patch is nested too deeply") from None


def _merge_maps(original: Map, patch: Map, type_: GoType) -> Map:
    if PATCH in patch:
        return _replaced_or_emptied(patch)
    if RETAIN_KEYS in patch:
        _retain_keys(original, patch)
    for name in [name for name in patch if name.startswith(SET_ORDER)]:
        _merge_in_order(original, patch, name, type_)
    for name, value in patch.items():
        if name.startswith(DELETE_FROM):
            _merge_field(original, _directive_field(name, DELETE_FROM) or name, value, type_, is_removal=True)
        else:
            _merge_field(original, name, value, type_, is_removal=False)
    return original


def _replaced_or_emptied(patch: Map) -> Map:
    directive = patch[PATCH]
    if directive == "replace":
        del patch[PATCH]
        return patch
    if directive == "delete":
        return {}
    raise _unknown_directive(patch)


def _unknown_directive(patch: Map) -> StatusError:
    return errors.plain_internal(f"unknown patch type: {go_text(patch[PATCH])} in map: {go_value(patch)}")


def _retain_keys(original: Map, patch: Map) -> None:
    """Drop the fields that `$retainKeys` does not name. Raises StatusError 400 if the patch sets other fields."""
    names = patch.pop(RETAIN_KEYS)
    malformed = errors.bad_request("invalid patch format of retainKeys")
    if not isinstance(names, list):
        raise malformed
    kept = {identity(name) for name in names}
    for name, value in patch.items():
        if value is None or name.startswith((DELETE_FROM, SET_ORDER)):
            continue
        if identity(name) not in kept:
            raise malformed
    for name in [name for name in original if identity(name) not in kept]:
        del original[name]


def _directive_field(name: str, directive: str) -> str:
    """Return the field of a directive such as `$setElementOrder/FIELD`. Raises StatusError 400."""
    prefix, slash, field = name.partition("/")
    if not slash or prefix != directive:
        kind = "primitive list" if directive == DELETE_FROM else "setElementOrder list"
        raise errors.bad_request(f"invalid patch format of {kind}")
    return field


def _merge_field(original: Map, name: str, value: Any, type_: GoType, *, is_removal: bool) -> None:
    if value is None:
        original.pop(name, None)
        return
    current: Any = original.get(name)
    if name not in original or current.__class__ is not value.__class__:
        if not is_removal:
            _discard_nulls(value)
            _set(original, name, value)
    elif isinstance(value, dict):
        field = map_field(type_, name)
        original[name] = value if field.strategy == REPLACE else _merge_maps(current, value, field.type)
    elif isinstance(value, list):
        field = list_field(type_, name)
        original[name] = _merge_lists(current, value, field, is_removal=is_removal).in_order(field.key)
    else:
        original[name] = value


def _set(original: Map, name: str, value: Any) -> None:
    """Set a field that has nothing to be merged with."""
    if isinstance(value, dict) and PATCH in value:
        original.pop(name, None)
    else:
        original[name] = _without_directives(value)


_INNER: Final = (dict, list)
"""Types of values with parts."""


def _without_directives(value: Any) -> Any:
    """Return the value without objects in it that have a `$patch`; other directives stay."""
    if isinstance(value, dict):
        for name, member in list(value.items()):
            if isinstance(member, dict) and PATCH in member:
                del value[name]
            elif member.__class__ in _INNER:
                value[name] = _without_directives(member)
        return value
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not (isinstance(item, dict) and PATCH in item)]
    return value


def _discard_nulls(value: Any) -> None:
    if isinstance(value, dict):
        if None in value.values():
            for name in [name for name, member in value.items() if member is None]:
                del value[name]
        for member in value.values():
            if member.__class__ in _INNER:
                _discard_nulls(member)
    elif isinstance(value, list):
        for item in value:
            if item.__class__ in _INNER:
                _discard_nulls(item)


def _merge_in_order(original: Map, patch: Map, directive: str, type_: GoType) -> None:
    """Follow a `$setElementOrder/FIELD` directive together with the patch's value of that field."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise wrong_type(_LIST, order)
    name = _directive_field(directive, SET_ORDER)
    current, value = original.get(name, []), patch.get(name, [])
    for each in (current, value):
        if not isinstance(each, list):
            raise wrong_type(_LIST, each)
    field = list_field(type_, name)
    check_order(value, order, field.key)
    server_order = current
    if name in original and name in patch:
        merge = _merge_lists(current, value, field, is_removal=False)
        # items named in the order need not be put into the patch's order first
        merged = merge.items if order else merge.in_order(field.key)
        server_order = merge.server_order
    elif name in patch:
        merged = _without_directives(value)
    elif name in original:
        merged = current
    else:
        return
    named, others = parted(merged, order, field.key)
    original[name] = in_order(named, others, order, server_order, field.key, element_type(current, value))
    patch.pop(name, None)


class _Merge(Struct, frozen=True):
    """A merged list that is not in its final order yet.

    `patched` are the items of the patch, `known` those of the server, each in their own order. `kind` is None if the
    items are in order already. `server_order` is the server's order, in case the patch has an order directive.
    """

    items: list[Any]
    server_order: list[Any]
    kind: type | None = None
    patched: Sequence[Any] = ()
    known: Sequence[Any] = ()

    def in_order(self, key: str) -> list[Any]:
        """Return the items in their final order. Raises StatusError 400, 500."""
        if self.kind is None:
            return self.items
        named, others = parted(self.items, self.patched, key)
        return in_order(named, others, self.patched, self.known, key, self.kind)


def _merge_lists(original: list[Any], patch: list[Any], field: Field, *, is_removal: bool) -> _Merge:
    if field.strategy != MERGE and not is_removal:
        return _Merge(patch, original)
    if not original and not patch:
        return _Merge(original, original)
    kind = element_type(original, patch)
    if kind is not dict:
        if is_removal:
            return _Merge(without(original, patch), original)
        return _Merge(unique(original + patch), original, kind, patch, original)
    if not field.key:
        reflected = "struct" if field.type.kind == "own" else field.type.kind
        raise errors.plain_internal(f"cannot merge lists without merge key for {reflected}")
    remaining, merging = _follow_item_directives(original, patch, field.key)
    if merging is None:
        replaced = [item for item in patch if PATCH not in item]
        return _Merge(replaced, remaining, kind, (), replaced)
    merged = _merge_items(remaining, merging, field)
    # Go puts new items into the memory of removed items, so that these have a place in the server's order
    return _Merge(merged, merged[: len(original)], kind, merging, merged[: len(remaining)])


def _follow_item_directives(original: list[Map], patch: list[Map], key: str) -> tuple[list[Map], list[Map] | None]:
    """Return the remaining original items, and the items of the patch, None if the patch replaces the list."""
    removed = set()
    replaces = False
    merging = []
    for item in patch:
        if PATCH not in item:
            merging.append(item)
            continue
        match item[PATCH]:
            case "delete":
                if key not in item:
                    raise no_merge_key(item, key)
                removed.add(identity_in_order(item[key]))
            case "replace":
                replaces = True
            case "merge":
                raise errors.plain_internal("merging lists cannot yet be specified in the patch")
            case _:
                raise _unknown_directive(item)
    if removed:
        original = [item for item in original if key not in item or identity(item[key]) not in removed]
    return original, None if replaces else merging


def _merge_items(original: list[Map], patch: list[Map], field: Field) -> list[Map]:
    merged = original.copy()
    places: dict[Any, int] = {}
    for place, item in enumerate(merged):
        if field.key in item:
            places.setdefault(identity_in_order(item[field.key]), place)
    for item in patch:
        if field.key not in item:
            raise no_merge_key(item, field.key)
        place = places.setdefault(identity_in_order(item[field.key]), len(merged))
        if place == len(merged):
            merged.append(item)
        else:
            merged[place] = _merge_maps(merged[place], item, field.type)
    return merged
