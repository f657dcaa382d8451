"""Objects as plain JSON data, whole or only where two objects differ.

An object is a Struct or a dict. `metadata.managedFields` is left out, because nobody owns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import compress
from operator import attrgetter, ne
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from .comparison import same

Plain = dict[str, Any]


def _undecoded(value: Any) -> Any:
    """Decode the JSON of a RawExtension, the only value in an object that is not plain. Raises TypeError for others."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    raise TypeError(f"{type(value).__name__} is not data of an object")


plain_value: Final[Callable[[Any], Any]] = partial(msgspec.to_builtins, enc_hook=_undecoded)
"""Returns a value as plain data."""


def plain_object(obj: Any) -> Plain:
    """Return an object as plain data, without its managedFields."""
    if isinstance(obj, msgspec.Struct):
        metadata: Any = obj.metadata  # type: ignore[attr-defined]
        if metadata.managed_fields:  # so that its field sets are not converted
            obj = replace(obj, metadata=replace(metadata, managed_fields=[]))
    plain: Plain = plain_value(obj)
    metadata = plain.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return plain


def plain_metadata(metadata: msgspec.Struct) -> Plain:
    """Return the metadata of an object as plain data, without its managedFields."""
    plain: Plain = plain_value(metadata)
    plain.pop("managedFields", None)
    return plain


def differing_metadata(old: Any, new: Any) -> tuple[Plain, Plain]:
    """Return the metadata of two objects as plain data, without equal members and without managedFields."""
    return _differing_structs(old, new, _METADATA)


_ALWAYS: Final = object()
"""A placeholder default for a member that JSON always has."""
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
_PLAIN: Final = (dict[str, str], list[str])
"""Types of members whose values are plain as they are."""
Member = tuple[str, str, object, bool]
"""Name, attribute, the value that JSON leaves out, and whether values are plain as they are."""


def values_of(attributes: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of these attributes of an object."""
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda obj: tuple(getattr(obj, name) for name in attributes)


class Members:
    """The members of a class, sorted by name, and a function that returns their values in that order.

    `empty` are the values of an empty object by attribute.
    """

    __slots__ = ("each", "empty", "values")

    def __init__(self, each: tuple[Member, ...], empty: Mapping[str, object]) -> None:
        self.each = each
        self.empty = empty
        self.values = values_of([attribute for _, attribute, _, _ in each])


@lru_cache(maxsize=4096)
def members(cls: Callable[..., msgspec.Struct]) -> Members:
    """Return the members of a class, sorted by name."""
    out: list[Member] = []
    empty: dict[str, object] = {}
    for each in msgspec.structs.fields(cast("type[msgspec.Struct]", cls)):
        default = each.default
        empty[each.name] = _ALWAYS if default is msgspec.NODEFAULT else default
        if default is msgspec.NODEFAULT:
            make = each.default_factory
            if make is not msgspec.NODEFAULT:
                empty[each.name] = make()
            default = empty[each.name] if make in (list, dict) else _ALWAYS
        out.append((each.encode_name, each.name, default, each.type in _PLAIN))
    return Members(tuple(sorted(out, key=lambda member: member[0])), empty)


def differing_structs(old: Any, new: Any) -> tuple[Plain, Plain]:
    """Return two objects of one class as `plain_object` does, without the members that are equal in both.

    Nested Structs are compared member by member. The data may be parts of the objects.
    """
    return _differing_structs(old, new, _ROOT)


_ROOT: Final = "metadata"
_METADATA: Final = "managed_fields"
_BELOW: Final = ""
"""Positions of two compared Structs, by the name of the member with special treatment. The object's own managedFields
are left out; those of a template's metadata are an ordinary field.
"""


def _differing_structs(old: Any, new: Any, where: str) -> tuple[Plain, Plain]:
    before: Plain = {}
    after: Plain = {}
    of_class = members(new.__class__)
    theirs, ours = of_class.values(old), of_class.values(new)
    differ = map(ne, theirs, ours)
    for (name, attribute, default, is_plain), a, b in compress(zip(of_class.each, theirs, ours, strict=True), differ):
        below = _BELOW
        if attribute == where:
            if where == _METADATA:
                continue
            below = _METADATA
        if isinstance(a, msgspec.Struct) and type(a) is type(b):
            before[name], after[name] = _differing_structs(a, b, below)
            continue
        if a != default:
            before[name] = a if is_plain or a.__class__ in _SCALARS else plain_value(a)
        if b != default:
            after[name] = b if is_plain or b.__class__ in _SCALARS else plain_value(b)
    return before, after


def differing_dicts(old: Plain, new: Plain) -> tuple[Plain, Plain]:
    """Return two dict objects without the top-level members that are equal in both."""
    names = sorted(
        name for name in old.keys() | new.keys() if name not in old or name not in new or not same(old[name], new[name])
    )
    return (
        plain_object({name: old[name] for name in names if name in old}),
        plain_object({name: new[name] for name in names if name in new}),
    )
