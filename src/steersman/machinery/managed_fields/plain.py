"""Objects as plain JSON data whole or only as far as two of them differ.

An object is a Struct or a dict. `metadata.managedFields` is left out: it tells of ownership and is
not owned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import compress
from operator import attrgetter, ne
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from .comparison import same

Plain = dict[str, Any]


def _undecoded(value: Any) -> Any:
    """The data in a RawExtension, the only thing in an object that is not plain."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    raise TypeError(f"{type(value).__name__} is not data of an object")


plain_value: Final[Callable[[Any], Any]] = partial(msgspec.to_builtins, enc_hook=_undecoded)
"""Returns a value as data."""


def plain_object(obj: Any) -> Plain:
    """An object as data, without its managedFields."""
    if isinstance(obj, msgspec.Struct):
        metadata: Any = obj.metadata  # type: ignore[attr-defined]
        if metadata.managed_fields:  # whose sets would be decoded for nothing
            obj = replace(obj, metadata=replace(metadata, managed_fields=[]))
    plain: Plain = plain_value(obj)
    metadata = plain.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return plain


def plain_metadata(metadata: msgspec.Struct) -> Plain:
    """The metadata of an object as data, without its managedFields."""
    plain: Plain = plain_value(metadata)
    plain.pop("managedFields", None)
    return plain


def differing_metadata(old: Any, new: Any) -> tuple[Plain, Plain]:
    """The metadata of two objects without members equal in both, and without managedFields."""
    return _differing_structs(old, new, _METADATA)


_ALWAYS: Final = object()
"""Stands for the default of a member that JSON has whatever its value."""
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
_PLAIN: Final = (dict[str, str], list[str])
"""Types of members whose values are plain as they are."""
Member = tuple[str, str, object, bool]
"""Name, attribute, the value that JSON leaves out, and whether values are plain as they are."""


class Members:
    """The members of a class, sorted by name, and what takes their values from an object in that order."""

    __slots__ = ("each", "values")

    def __init__(self, each: tuple[Member, ...]) -> None:
        self.each = each
        attributes = [attribute for _, attribute, _, _ in each]
        if len(attributes) > 1:
            self.values: Callable[[Any], tuple[Any, ...]] = attrgetter(*attributes)
        else:
            self.values = lambda obj: tuple(getattr(obj, name) for name in attributes)


@lru_cache(maxsize=4096)
def members(cls: Callable[..., msgspec.Struct]) -> Members:
    """Return the members of a class."""
    out: list[Member] = []
    for each in msgspec.structs.fields(cast("type[msgspec.Struct]", cls)):
        default = each.default
        if default is msgspec.NODEFAULT:
            default = each.default_factory() if each.default_factory in (list, dict) else _ALWAYS
        out.append((each.encode_name, each.name, default, each.type in _PLAIN))
    return Members(tuple(sorted(out, key=lambda member: member[0])))


def differing_structs(old: Any, new: Any) -> tuple[Plain, Plain]:
    """Two objects of one class as `plain_object` has them, without members equal in both.

    They are compared member by member down to what is not a Struct any more. The data may be parts of the objects.
    """
    return _differing_structs(old, new, _ROOT)


_ROOT: Final = "metadata"
_METADATA: Final = "managed_fields"
_BELOW: Final = ""
"""Where two Structs are, told by the name of the member that is special there: the object's own managedFields are left
out, those of a template's metadata are a field like any other."""


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
    """Two objects that are data already, without members equal in both; of unequal metadata all is kept."""
    names = sorted(
        name for name in old.keys() | new.keys() if name not in old or name not in new or not same(old[name], new[name])
    )
    return (
        plain_object({name: old[name] for name in names if name in old}),
        plain_object({name: new[name] for name in names if name in new}),
    )
