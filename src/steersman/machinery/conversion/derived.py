"""Conversions between versions whose types have the same members, derived from the types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, get_args, get_origin

import msgspec

from steersman.machinery.conversion.conversion import Conversion

Convert = Callable[[Any], Any]

_TYPE_META: Final = frozenset({"kind", "api_version"})
"""Members that stay empty in converted objects, because the caller sets them. References, which are not objects, keep
theirs.
"""


def derive_conversion(
    source: type[msgspec.Struct], target: type[msgspec.Struct], special: Iterable[Conversion] = ()
) -> Convert:
    """Return a function that converts a `source` into a `target`; parts whose types both share are not copied.

    `special` are conversions of nested types whose members differ. Raises TypeError for all other types whose members
    differ, so that no member can be lost.
    """
    return _Maker(special).of(source, target)


def derive_both_ways(
    source: type[msgspec.Struct], target: type[msgspec.Struct], special: Iterable[Conversion] = ()
) -> tuple[Conversion, Conversion]:
    """Return the conversions from `source` to `target` and back."""
    special = tuple(special)
    there, back = derive_conversion(source, target, special), derive_conversion(target, source, special)
    return Conversion(source, target, there), Conversion(target, source, back)


class _Maker:
    """A builder of conversion functions for nested types, one function for each pair of types."""

    def __init__(self, special: Iterable[Conversion]) -> None:
        self._made: dict[tuple[type[Any], type[Any]], Convert] = {
            (each.source, each.target): each.convert for each in special
        }

    def of(self, source: type[msgspec.Struct], target: type[msgspec.Struct]) -> Convert:
        """Return the conversion function for two classes. Raises TypeError."""
        conversion = self._made.get((source, target))
        if conversion is None:
            conversion = self._made[source, target] = self._struct(source, target)
        return conversion

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
        """Return the conversion function of a member; None if its type is the same. Raises TypeError."""
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
