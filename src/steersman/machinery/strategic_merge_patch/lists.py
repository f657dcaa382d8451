"""Lists of a strategic merge patch: telling items apart, and putting them in order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from steersman.machinery import errors
from steersman.machinery.errors import StatusError
from steersman.machinery.go_print import go_type, go_value

PATCH: Final = "$patch"
SET_ORDER: Final = "$setElementOrder"

_MAP: Final = go_type({})
_NOT_COMPARABLE: Final = object()
_EXACT_UP_TO: Final = 20
"""Go sorts lists of so many items by insertion, which shows where the order given says nothing about an item."""

Places = dict[Hashable, int]


def wrong_type(wanted: str, value: Any) -> StatusError:
    """500: a value is of another type than a directive or the list it is in calls for."""
    found = go_type(value)
    return errors.plain_internal(f"expected a {wanted}, but received a {'%!s(<nil>)' if value is None else found}")


def no_merge_key(item: dict[str, Any], key: str) -> StatusError:
    """500: an item cannot be told apart from others."""
    return errors.plain_internal(f"map: {go_value(item)} does not contain declared merge key: {key}")


def identity(value: Any) -> Hashable:
    """What is equal for values that Go finds equal: numbers with and without a fraction never are.

    Raises StatusError 400 for what Go cannot compare; kube-apiserver breaks off the connection there.
    """
    if isinstance(value, dict | list):
        raise errors.bad_request(f"the patch compares {go_value(value)}, which is neither text nor a number")
    return (value.__class__, value)


def identity_in_order(value: Any) -> Hashable:
    """The same for what an item is only looked for by: what is not comparable stands for nothing."""
    return _NOT_COMPARABLE if isinstance(value, dict | list) else (value.__class__, value)


def element_type(*lists: list[Any]) -> type:
    """The type that all items have. Raises StatusError: 422 for lists of lists, 500 for types that differ, or none."""
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
    """An item's own identity in a list with a merge key. Raises StatusError 400, 500."""
    if item.__class__ is not dict:
        raise wrong_type(_MAP, item)
    if key not in item:
        raise no_merge_key(item, key)
    return identity(item[key])


def without(items: list[Any], unwanted: list[Any]) -> list[Any]:
    """The scalars that are not among the unwanted ones."""
    out = {identity(item) for item in unwanted}
    return [item for item in items if identity(item) not in out]


def unique(items: list[Any]) -> list[Any]:
    """Scalars, each once."""
    return list({identity(item): item for item in reversed(items)}.values())[::-1]


def check_order(patch: Any, order: list[Any], key: str) -> None:
    """The items of a patch must be in the order that goes with them. Raises StatusError 400, 500."""
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


def parted(items: list[Any], by: Sequence[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The items that are named in `by`, and those that are not. Raises StatusError 400, 500."""
    if not key:
        wanted = {identity(item) for item in by}
        known = [identity(item) in wanted for item in items]
    else:
        limit = next((index for index, item in enumerate(by) if item.__class__ is not dict), len(by))
        wanted = {identity_in_order(item[key]) for item in by[:limit] if key in item}
        known = []
        for item in items:
            found = merge_key_of(item, key) in wanted
            if not found and limit < len(by):
                raise errors.plain_internal(f"value for key {limit} is not a map")
            known.append(found)
    named = [item for item, is_known in zip(items, known, strict=True) if is_known]
    return named, [item for item, is_known in zip(items, known, strict=True) if not is_known]


def in_order(
    named: list[Any], others: list[Any], first: Sequence[Any], second: Sequence[Any], key: str, kind: type
) -> list[Any]:
    """The items that `first` names in its order and the others in that of `second`, the two merged by `second`.

    That is how the items of a patch (or of the order sent with it) and those that only the server has find together:
    either keeps its own order, and an item of the server's goes before the first that comes after it there.
    Raises StatusError 500.
    """
    if kind is dict:
        for each in (named, first, others, second):
            _check_merge_keys(each, key)
    identify = _identify(key, kind)
    places = _places(first, identify)
    named = _sorted(named, places, identify)
    places = _places(second, identify)
    others = _sorted(others, places, identify)
    merged: list[Any] = []
    left = [places.get(identify(item), -1) for item in others]
    right = [places.get(identify(item), -1) for item in named]
    i = j = 0
    while i < len(others) and j < len(named):
        if 0 <= left[i] < right[j]:
            merged.append(others[i])
            i += 1
        else:
            merged.append(named[j])
            j += 1
    return merged + others[i:] + named[j:]


def _check_merge_keys(items: Sequence[Any], key: str) -> None:
    for item in items:
        if item.__class__ is not dict:
            raise wrong_type(_MAP, item)
        if key not in item:
            raise no_merge_key(item, key)


def _identify(key: str, kind: type) -> Callable[[Any], Hashable]:
    if kind is dict:
        return lambda item: identity_in_order(item.get(key))
    return identity_in_order


def _places(order: Sequence[Any], identify: Callable[[Any], Hashable]) -> Places:
    places: Places = {}
    for place, item in enumerate(order):
        places.setdefault(identify(item), place)
    return places


def _sorted(items: list[Any], places: Places, identify: Callable[[Any], Hashable]) -> list[Any]:
    """The items by their places. One that has no place counts as coming before whatever it is compared with."""
    keyed = [(places.get(identify(item), -1), item) for item in items]
    if len(items) > _EXACT_UP_TO or all(place >= 0 for place, _ in keyed):
        return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]
    for start in range(1, len(keyed)):
        at = start
        while at > 0 and (min(keyed[at][0], keyed[at - 1][0]) < 0 or keyed[at][0] < keyed[at - 1][0]):
            keyed[at - 1], keyed[at] = keyed[at], keyed[at - 1]
            at -= 1
    return [item for _, item in keyed]
