"""Types that decode only some members of an object and skip the rest, at a gigabyte a second.

Often the server needs one member of a stored object (its phase, its class). Decoding the rest costs many times more,
and clients may create large objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from steersman.api import scalars

_PLAIN: Final[dict[Any, Any]] = {
    scalars.Quantity: str,
    scalars.Time: str,
    scalars.MicroTime: str,
    scalars.Duration: str,
    scalars.Float64: float | int,
}
"""Types of stored scalars. Stored scalars are canonical already, so they need no decoding hook."""


def part_of(kind: type[Any], paths: Iterable[str]) -> type[Any]:
    """Return a Struct with only the members of `kind` on these paths (such as `spec.nodeName`, in JSON names).

    A path that leads beyond a Struct, or to no member, keeps all of the value that it has reached. Scalars are decoded
    as stored and are not made canonical. Raises ValueError for a path whose first name is not a member of `kind`.
    """
    split = tuple(sorted({tuple(path.split(".")) for path in paths}))
    if wrong := sorted({path[0] for path in split} - set(kind.__struct_encode_fields__)):
        raise ValueError(f"{kind.__name__} has no members {', '.join(wrong)}")
    return _part(kind, split)


def _make_part(kind: type[Any], paths: tuple[tuple[str, ...], ...]) -> type[Any]:
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in paths:
        below.setdefault(first, []).append(tuple(rest))
    members: list[tuple[str, Any, Any]] = []
    for each in _members(kind):
        if (rests := below.get(each.encode_name)) is not None:
            narrow = None if () in rests else tuple(rests)
            members.append((each.name, _narrowed(each.type, narrow, ()), _default(each, narrow)))
    return _defined(kind, members)


_part: Callable[[Any, tuple[tuple[str, ...], ...]], type[Any]] = lru_cache(maxsize=1024)(_make_part)


def _default(member: msgspec.structs.FieldInfo, paths: tuple[tuple[str, ...], ...] | None) -> Any:
    factory = member.default_factory
    if factory is msgspec.NODEFAULT:
        return member.default
    if isinstance(factory, type) and issubclass(factory, msgspec.Struct):
        factory = _narrowed(factory, paths, ())
    return msgspec.field(default_factory=factory)


def _narrowed(type_: Any, paths: tuple[tuple[str, ...], ...] | None, above: tuple[Any, ...]) -> Any:
    """Return the type with only the members on `paths` (None for all members), and with plain scalars.

    `above` are the types that contain this one. A type that contains itself is returned unchanged.
    """
    if type_ in _PLAIN:
        return _PLAIN[type_]
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        if type_ in above:
            return type_
        if paths is None or any(path[0] not in type_.__struct_encode_fields__ for path in paths):
            return _whole(type_, (*above, type_))
        return _part(type_, paths)
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        return Union[tuple(_narrowed(each, paths, above) for each in arguments)]  # noqa: UP007
    if origin in (list, dict):
        return origin[tuple(_narrowed(each, None, above) for each in arguments)]
    return type_


def _whole(kind: type[Any], above: tuple[Any, ...]) -> Any:
    """Return the type with plain scalars, or the type itself if it has no scalars."""
    fields = _members(kind)
    members = [(each.name, _narrowed(each.type, None, above), _default(each, None)) for each in fields]
    if all(each.type == member[1] for each, member in zip(fields, members, strict=True)):
        return kind
    return _defined(kind, members)


def _defined(kind: type[Any], members: list[tuple[str, Any, Any]]) -> type[Any]:
    rename = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    return msgspec.defstruct(kind.__name__, members, rename=rename, kw_only=True, gc=False)


_members: Callable[[Any], tuple[msgspec.structs.FieldInfo, ...]] = lru_cache(maxsize=64)(msgspec.structs.fields)
"""Return the fields of a Struct. Cached, because finding them evaluates annotations."""
