"""Sorting of large maps before msgspec encodes them in order.

msgspec's own sort is quadratic for maps that are nearly sorted, holds the interpreter while it runs, and recurses once
for each key of some maps: 65,000 keys, of which the last comes first, crash the process. It is linear for sorted maps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from threading import get_ident, main_thread
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

T = TypeVar("T")

_MANY: Final = 200
"""The number of keys up to which msgspec sorts a map in negligible time, in whatever order they are."""
_FEW_COMMAS: Final = 500
"""Commas of JSON up to which its maps are not examined: msgspec sorts 500 keys in 1.5 ms at worst."""
_IN_ORDER: Final = msgspec.json.Encoder()
_STRUCT: Final = type(msgspec.Struct)
_SCALARS: Final = (str, int, float, bool, bytes, NoneType)
_MAIN: Final = main_thread().ident


def presorted(value: T) -> T:
    """Return `value` with its large maps sorted, or unchanged if this is the main thread.

    Large values are processed in worker threads. The event loop only handles values too small for the sort to matter.
    """
    return value if get_ident() == _MAIN else with_sorted_maps(value)


def presorted_json(value: T) -> T:
    """Return `value`, which msgspec encodes as JSON, as `presorted` does, at little cost if it is small.

    Its length in JSON is known twenty times as fast as its maps are visited. Raises the errors of msgspec's encoder.
    """
    if get_ident() == _MAIN or _IN_ORDER.encode(value).count(b",") <= _FEW_COMMAS:
        return value
    return with_sorted_maps(value)


def with_sorted_maps(value: T) -> T:
    """Return `value` with each large map replaced, in place, by a sorted one."""
    sorted_value: T = _sorted(value)
    _walk(sorted_value)
    return sorted_value


def _sorted(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > _MANY:
        keys = list(value)
        if all(isinstance(key, str) for key in keys):
            keys.sort()
            return {key: value[key] for key in keys}
    return value


def _walk(value: Any) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            if isinstance(member, dict) and len(member) > _MANY:
                value[key] = member = _sorted(member)
            if not isinstance(member, _SCALARS):
                _walk(member)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict) and len(item) > _MANY:
                value[index] = item = _sorted(item)
            if not isinstance(item, _SCALARS):
                _walk(item)
    elif isinstance(value.__class__, _STRUCT):  # the class of msgspec.Struct itself makes isinstance slow
        members = _members_of(value.__class__)
        read = members.read(value)
        if not any(read):
            return  # as in most of the many nodes of a schema
        for name, member in zip(members.names, read, strict=True):
            if not member:
                continue
            if isinstance(member, dict) and len(member) > _MANY:
                member = _sorted(member)
                if value.__struct_config__.frozen:
                    msgspec.structs.force_setattr(value, name, member)
                else:
                    setattr(value, name, member)
            if not isinstance(member, _SCALARS):
                _walk(member)


class _Members(NamedTuple):
    """Members of a Struct that may hold maps, lists or Structs, and the function that reads them at once."""

    names: tuple[str, ...]
    read: Callable[[Any], tuple[Any, ...]]


@lru_cache(maxsize=2048)
def _members_of(cls: type[msgspec.Struct]) -> _Members:
    try:
        names = tuple(each.name for each in msgspec.structs.fields(cls) if not _is_scalar(each.type))
    except NameError:  # a type that only the function around the class knows
        names = cls.__struct_fields__
    match names:
        case ():
            return _Members((), lambda _: ())
        case (name,):
            return _Members(names, lambda value: (getattr(value, name),))
    return _Members(names, attrgetter(*names))


def _is_scalar(annotation: Any) -> bool:
    """Return True if no value of a type holds others."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_scalar(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return all(map(_is_scalar, get_args(annotation)))
    return isinstance(annotation, type) and issubclass(annotation, _SCALARS)
