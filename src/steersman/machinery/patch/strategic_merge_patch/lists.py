"""Lists in a strategic merge patch: identity and order of items."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from steersman.machinery.errors import status as errors
from steersman.machinery.errors.go_print import go_type, go_value
from steersman.machinery.errors.status import StatusError

PATCH: Final = "$patch"
SET_ORDER: Final = "$setElementOrder"

_MAP: Final = go_type({})
_NOT_COMPARABLE: Final = object()
_EXACT_UP_TO: Final = 20
"""The longest list that Go sorts by insertion. The algorithm shows in the result if the order does not mention an item.
"""

Places = dict[Hashable, int]
Items = list[tuple[Hashable, Any]]
"""Pairs of identity and item."""


def wrong_type(wanted: str, value: Any) -> StatusError:
    """Return a 500 for a value whose type differs from the one that a directive or its list needs."""
    type_name = go_type(value)
    return errors.plain_internal(f"expected a {wanted}, but received a {'%!s(<nil>)' if value is None else type_name}")


def no_merge_key(item: dict[str, Any], key: str) -> StatusError:
    """Return a 500 for an item without the merge key."""
    return errors.plain_internal(f"map: {go_value(item)} does not contain declared merge key: {key}")


def identity(value: Any) -> Hashable:
    """Return a hashable that is equal for values that Go finds equal: an integer never equals a float.

    Raises StatusError 400 for values that Go cannot compare; kube-apiserver breaks off the connection there.
    """
    kind = value.__class__
    if kind is str:
        return value  # type: ignore[no-any-return]  # most values are text, and text never equals a pair
    if kind is dict or kind is list:
        raise errors.bad_request(f"the patch compares {go_value(value)}, which is neither text nor a number")
    return (kind, value)


def identity_in_order(value: Any) -> Hashable:
    """Return the identity of an item for lookups; values that Go cannot compare equal no item."""
    return _NOT_COMPARABLE if value.__class__ in (dict, list) else identity(value)


def element_type(*lists: list[Any]) -> type:
    """Return the common type of all items.

    Raises StatusError: 422 for lists of lists, 400 for a list that starts with null, 500 for different types or no
    items.
    """
    kind: type | None = None
    for each in lists:
        for item in each:
            if kind is None:
                kind = item.__class__
                if kind is list:
                    raise errors.generic_server_response(422, message="lists of lists are not supported")
                if item is None:
                    raise errors.bad_request("the patch has a list that starts with null")
            elif item.__class__ is not kind:
                raise errors.plain_internal(f"list element types are not identical: {go_value(list(lists))}")
    if kind is None:
        raise errors.plain_internal("no elements in any of the given slices")
    return kind


def merge_key_of(item: Any, key: str) -> Hashable:
    """Return the identity of an item in a list with a merge key. Raises StatusError 400, 500."""
    if item.__class__ is not dict:
        raise wrong_type(_MAP, item)
    if key not in item:
        raise no_merge_key(item, key)
    return identity(item[key])


def without(items: list[Any], unwanted: list[Any]) -> list[Any]:
    """Return the scalars that are not among the unwanted ones."""
    out = {identity(item) for item in unwanted}
    return [item for item in items if identity(item) not in out]


def unique(items: list[Any]) -> list[Any]:
    """Return the scalars without repetitions."""
    return list({identity(item): item for item in reversed(items)}.values())[::-1]


def check_order(patch: Any, order: list[Any], key: str) -> None:
    """Raise StatusError (400, 500) unless the items of a patch are in the order of its `$setElementOrder`."""
    if not order or not patch:
        return
    if key:
        for item in patch:
            if item.__class__ is not dict:
                raise wrong_type(_MAP, item)
        kept = [item for item in patch if item.get(PATCH) != "delete"]
    else:
        kept = patch
    at = place = 0
    while at < len(kept) and place < len(order):
        item = kept[at]
        if item.__class__ is dict and PATCH in item:
            at += 1
            continue
        at += _same(item, order[place], key)
        place += 1
    if at < len(kept):
        text = f"The order in patch list:\n{go_value(patch)}\n doesn't match {SET_ORDER} list:\n{go_value(order)}\n"
        raise errors.plain_internal(text)


def _same(left: Any, right: Any, key: str) -> bool:
    if key:
        for item in (left, right):
            if item.__class__ is not dict:
                raise wrong_type(_MAP, item)
        for item in (left, right):
            if key not in item:
                raise no_merge_key(item, key)
        left, right = left[key], right[key]
    if left.__class__ is not right.__class__:
        return False
    return identity(left) == identity(right)


def parted(items: list[Any], by: Sequence[Any], key: str) -> tuple[Items, Items]:
    """Split items into those that `by` names and the others, each with its identity. Raises StatusError 400, 500."""
    limit = len(by)
    if key:
        limit = next((index for index, item in enumerate(by) if item.__class__ is not dict), limit)
        identities = {identity_in_order(item[key]) for item in by[:limit] if key in item}
        keyed = [(merge_key_of(item, key), item) for item in items]
    else:
        identities = {identity(item) for item in by}
        keyed = [(identity(item), item) for item in items]
    others = [pair for pair in keyed if pair[0] not in identities]
    if others and limit < len(by):
        raise errors.plain_internal(f"value for key {limit} is not a map")
    return ([pair for pair in keyed if pair[0] in identities] if len(others) < len(keyed) else []), others


def in_order(
    named: Items, others: Items, first: Sequence[Any], second: Sequence[Any], key: str, kind: type
) -> list[Any]:
    """Return the items in their final order.

    The `named` items are in the order of `first`, the `others` in that of `second`. Both are merged by `second`: each
    keeps its own order, and one of the others comes before the first named item that follows it in `second`. So the
    items of a patch (or of its `$setElementOrder`) are merged with items that only the server has. Raises StatusError
    500.
    """
    if kind is dict:
        _check_merge_keys(first, key)
        _check_merge_keys(second, key)
    named = _sorted(named, _places(first, key, kind)) if len(named) > 1 else named
    if not others:
        return [item for _, item in named]
    places = _places(second, key, kind)
    others = _sorted(others, places)
    merged = []
    i = j = 0
    while i < len(others) and j < len(named):
        if 0 <= places.get(others[i][0], -1) < places.get(named[j][0], -1):
            merged.append(others[i][1])
            i += 1
        else:
            merged.append(named[j][1])
            j += 1
    return merged + [item for _, item in others[i:]] + [item for _, item in named[j:]]


def _check_merge_keys(items: Sequence[Any], key: str) -> None:
    for item in items:
        if item.__class__ is not dict:
            raise wrong_type(_MAP, item)
        if key not in item:
            raise no_merge_key(item, key)


def _places(order: Sequence[Any], key: str, kind: type) -> Places:
    places: Places = {}
    for place, item in enumerate(order):
        places.setdefault(identity_in_order(item[key] if kind is dict else item), place)
    return places


def _sorted(items: Items, places: Places) -> Items:
    """Return the items sorted by their places.

    As in Go's insertion sort, an item without a place counts as smaller than any item with which it is compared.
    """
    positions = [places.get(token, -1) for token, _ in items]
    if len(items) > _EXACT_UP_TO or min(positions) >= 0:
        if all(positions[at] <= positions[at + 1] for at in range(len(positions) - 1)):
            return items
        return [items[at] for at in sorted(range(len(items)), key=positions.__getitem__)]
    placed = list(zip(positions, items, strict=True))
    for start in range(1, len(placed)):
        at = start
        while at > 0 and (min(placed[at][0], placed[at - 1][0]) < 0 or placed[at][0] < placed[at - 1][0]):
            placed[at - 1], placed[at] = placed[at], placed[at - 1]
            at -= 1
    return [item for _, item in placed]
