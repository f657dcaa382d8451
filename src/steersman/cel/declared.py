"""Types with the limits of a schema for the lengths of strings and the sizes of lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from steersman.cel import types
from steersman.cel.types import Type


class DeclaredType(Struct, frozen=True, eq=False):
    """A type as declared by a schema (apiserver `cel.DeclType`).

    `max_elements` is the maximum length of a string or bytes, or the maximum size of a list or map. It is 0 for other
    types.
    """

    type: Type
    max_elements: int = 0
    key: DeclaredType | None = None
    element: DeclaredType | None = None
    fields: Mapping[str, DeclaredType] | None = None

    def limited(self, maximum: int) -> DeclaredType:
        """Return the same type with another limit."""
        return DeclaredType(self.type, maximum, self.key, self.element, self.fields)

    def at(self, path: tuple[str, ...]) -> DeclaredType | None:
        """Return the type at a path below this one, None if there is none. Items, keys and values are `@items`, `@keys`
        and `@values`.
        """
        declared: DeclaredType | None = self
        for name in path:
            if declared is None:
                return None
            if name == "@items" or name == "@values":
                declared = declared.element
            elif name == "@keys":
                declared = declared.key
            else:
                declared = None if declared.fields is None else declared.fields.get(name)
        return declared

    def objects(self) -> Iterator[DeclaredType]:
        """Yield the types with fields among this one and all below it."""
        if self.fields is not None:
            yield self
            for each in self.fields.values():
                yield from each.objects()
        if self.element is not None:
            yield from self.element.objects()


STRING: Final = DeclaredType(types.STRING)
BOOL: Final = DeclaredType(types.BOOL)
INT: Final = DeclaredType(types.INT)
DOUBLE: Final = DeclaredType(types.DOUBLE)
BYTES: Final = DeclaredType(types.BYTES)
TIMESTAMP: Final = DeclaredType(types.TIMESTAMP)
DURATION: Final = DeclaredType(types.DURATION)
ANY: Final = DeclaredType(types.ANY)
DYN: Final = DeclaredType(types.DYN)


def declared_list(element: DeclaredType, maximum: int) -> DeclaredType:
    """Return a list type with at most `maximum` elements."""
    return DeclaredType(types.list_of(element.type), maximum, element=element)


def declared_map(key: DeclaredType, element: DeclaredType, maximum: int) -> DeclaredType:
    """Return a map type with at most `maximum` entries."""
    return DeclaredType(types.map_of(key.type, element.type), maximum, key=key, element=element)


def declared_object(name: str, fields: Mapping[str, DeclaredType]) -> DeclaredType:
    """Return a type with fields. Reserved names of CEL must be given as `__name__`."""
    return DeclaredType(types.object_type(name), fields=fields)
