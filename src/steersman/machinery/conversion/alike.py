"""Conversions between versions whose types have the same members, made from the types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, get_args, get_origin

import msgspec

from steersman.machinery.conversion.conversion import Conversion

Convert = Callable[[Any], Any]

_TYPE_META: Final = frozenset({"kind", "api_version"})
"""Left empty in objects that are made: the caller knows them. What is no object, a reference, has its own."""


def alike(source: type[msgspec.Struct], target: type[msgspec.Struct], special: Iterable[Conversion] = ()) -> Convert:
    """A function that makes a `target` of a `source`; parts of types that both have are shared, not copied.

    `special` are conversions of types within them that are not alike. Raises TypeError for others whose members differ,
    so nothing can be lost on the way.
    """
    return _Maker(special).of(source, target)


def both_ways(
    source: type[msgspec.Struct], target: type[msgspec.Struct], special: Iterable[Conversion] = ()
) -> tuple[Conversion, Conversion]:
    """The conversions from `source` to `target` and back."""
    special = tuple(special)
    there, back = alike(source, target, special), alike(target, source, special)
    return Conversion(source, target, there), Conversion(target, source, back)


class _Maker:
    """Makes the functions for types that hold each other, each pair once."""

    def __init__(self, special: Iterable[Conversion]) -> None:
        self._made: dict[tuple[type[Any], type[Any]], Convert] = {
            (each.source, each.target): each.convert for each in special
        }

    def of(self, source: type[msgspec.Struct], target: type[msgspec.Struct]) -> Convert:
        """The function for two classes. Raises TypeError."""
        found = self._made.get((source, target))
        if found is None:
            found = self._made[source, target] = self._struct(source, target)
        return found

    def _struct(self, source: type[msgspec.Struct], target: type[msgspec.Struct]) -> Convert:
        old = {each.name: each.type for each in msgspec.structs.fields(source)}
        new = {each.name: each.type for each in msgspec.structs.fields(target)}
        if old.keys() != new.keys():
            differing = ", ".join(sorted(old.keys() ^ new.keys()))
            raise TypeError(f"{source.__module__}.{source.__name__} differs in {differing}")
        left = _TYPE_META if "metadata" in new else frozenset[str]()
        members = [(name, self._member(old[name], new[name])) for name in new if name not in left]
        shared = tuple(name for name, convert in members if convert is None)
        converted = tuple((name, convert) for name, convert in members if convert is not None)

        def convert_struct(obj: Any) -> Any:
            made = target()
            for name in shared:
                setattr(made, name, getattr(obj, name))
            for name, convert in converted:
                setattr(made, name, convert(getattr(obj, name)))
            return made

        return convert_struct

    def _member(self, source: Any, target: Any) -> Convert | None:
        """How a member becomes one of the other type; None if it is the same."""
        if source == target:
            return None
        if isinstance(source, type) and isinstance(target, type) and issubclass(source, msgspec.Struct):
            return self.of(source, target)
        old, new = get_args(source), get_args(target)
        if get_origin(source) != get_origin(target) or len(old) != len(new):
            raise TypeError(f"{source} and {target} are not alike")
        if type(None) in old:
            [old_one], [new_one] = ([each for each in args if each is not type(None)] for args in (old, new))
            return _optional(self._member(old_one, new_one))
        if get_origin(source) is list:
            return _list(self._member(old[0], new[0]))
        if get_origin(source) is dict and old[0] == new[0]:
            return _dict(self._member(old[1], new[1]))
        raise TypeError(f"{source} and {target} are not alike")


def _optional(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _list(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda values: [convert(each) for each in values]


def _dict(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda values: {name: convert(each) for name, each in values.items()}
