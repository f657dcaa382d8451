"""What field ownership needs to know of a type: which parts are leaves, which lists have keys, which are sets.

A schema is made of atoms. An atom says what a value may be: a scalar, a list, a map (a struct is a map with fields) or,
where the type is open, several of them. Follows sigs.k8s.io/structured-merge-diff `schema`; how OpenAPI becomes atoms
follows k8s.io/kube-openapi `schemaconv`. Atoms know nothing of Python classes: custom resources have the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .path_elements import scalar_text, value_text
from .typed_error import TypedError

NUMERIC: Final = "numeric"
STRING: Final = "string"
BOOLEAN: Final = "boolean"
UNTYPED: Final = "untyped"

_ABSENT: Final = object()


class Atom:
    """What a value may be. `leaf` if it is owned as a whole, whatever it is."""

    __slots__ = ("leaf", "list", "map", "scalar")

    def __init__(self, scalar: str = "", list: ListType | None = None, map: MapType | None = None) -> None:
        self.scalar = scalar
        self.list = list
        self.map = map
        self.leaf = False
        self.seal()

    def seal(self) -> None:
        """Finds out whether it is a leaf, once all parts are in place."""
        granular_list = self.list is not None and not self.list.atomic
        granular_map = self.map is not None and not self.map.atomic
        self.leaf = not granular_list and not granular_map

    def become(self, other: Atom) -> None:
        """Takes over another's content: for types that refer to themselves."""
        self.scalar, self.list, self.map = other.scalar, other.list, other.map
        self.seal()


class MapType:
    """A struct or a map: atoms of its named fields, and of what has another name (None: nothing may)."""

    __slots__ = ("atomic", "element", "elements", "fields")

    def __init__(self, fields: Mapping[str, Atom], element: Atom | None, *, atomic: bool = False) -> None:
        self.fields = fields
        self.element = element
        self.atomic = atomic
        self.elements: dict[str, tuple[str, Atom]] = {name: ("f:" + name, atom) for name, atom in fields.items()}
        """By a field's name: its path element and its atom."""

    def child(self, name: str) -> Atom | None:
        """The atom of a member; None if there can be no such member."""
        return self.fields.get(name, self.element)


class ListType:
    """A list: of one piece, a set of scalars (no keys), or of items told apart by the values of some fields."""

    __slots__ = ("_parts", "atomic", "element", "keys")

    def __init__(
        self,
        element: Atom,
        *,
        atomic: bool = True,
        keys: Sequence[str] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.element = element
        self.atomic = atomic
        self.keys = tuple(keys)
        self._parts = [(name, scalar_text(name) + ":", (defaults or {}).get(name)) for name in sorted(self.keys)]

    def element_of(self, item: Any) -> str:
        """The path element of an item. Raises TypedError if it cannot be told apart."""
        if not self.keys:
            return value_text(item)
        if not isinstance(item, dict):
            what = "a null element" if item is None else "non-map elements"
            raise TypedError(f"associative list with keys may not have {what}")
        texts = []
        for name, prefix, default in self._parts:
            value = item.get(name, _ABSENT)
            if value is _ABSENT:
                if default is None:
                    continue
                value = default
            texts.append(prefix + scalar_text(value))
        if not texts:
            names = " ".join(scalar_text(name) for name in self.keys)
            raise TypedError(
                f"associative list with keys has an element that omits all key fields [{names}]"
                " (and doesn't have default values for any key fields)"
            )
        return "k:{" + ",".join(texts) + "}"


class Schema:
    """The schema of a kind in one version; two of them are the same only if they are the same object."""

    __slots__ = ("root",)

    def __init__(self, root: Atom) -> None:
        self.root = root


def _open_atoms() -> tuple[Atom, Atom]:
    untyped = Atom()
    untyped.become(Atom(UNTYPED, ListType(untyped), MapType({}, untyped, atomic=True)))
    deduced = Atom()
    deduced.become(Atom(UNTYPED, ListType(untyped), MapType({}, deduced)))
    return untyped, deduced


UNTYPED_ATOM, DEDUCED_ATOM = _open_atoms()
"""Anything, owned as a whole; anything, whose maps are owned member by member and whose lists are of one piece."""

DEDUCED: Final = Schema(DEDUCED_ATOM)
"""The schema of what has none."""
