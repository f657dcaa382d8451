"""Merging of a hook's changes into the object that the client sent; unchanged parts stay as sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from steersman.library.models import Plain
from steersman.machinery.codec.serializer import encode

_MISSING: Final = object()


def changed(given: Any, before: Any, after: Any) -> Any:
    """Return `given` with the differences between `before` and `after`, the class's forms before and after a hook.

    A list is merged as one value. A list with duplicates that the class holds once (a set) stays, so that it is
    validated as it was sent.
    """
    if after == before:
        return given
    if isinstance(given, dict) and isinstance(before, dict) and isinstance(after, dict):
        result = {name: value for name, value in given.items() if name not in before or name in after}
        for name, value in after.items():
            old = before.get(name, _MISSING)
            if value != old:
                result[name] = changed(given.get(name, _MISSING), old, value)
        return result
    if isinstance(given, list) and isinstance(before, list) and len(given) > len(before) and _has_duplicates(given):
        return given
    return after


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Plain:
    """Return the merge patch (RFC 7386) from `before` to `after`, neither of which has null members."""
    patch: Plain = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name, _MISSING)
        if value == old:
            continue
        patch[name] = difference(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return patch


def merged(given: Mapping[str, Any], patch: Mapping[str, Any]) -> Plain:
    """Return an object with a merge patch applied."""
    result = dict(given)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            old = result.get(name)
            result[name] = merged(old if isinstance(old, dict) else {}, value)
        else:
            result[name] = value
    return result


def _has_duplicates(values: Sequence[Any]) -> bool:
    return len({encode(each) for each in values}) < len(values)
