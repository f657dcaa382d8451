"""Schemas for field ownership: which parts of a type are leaves, which lists have keys, which are sets.

A schema consists of atoms. An atom tells the possible forms of a value: a scalar, a list, a map (a struct is a map with
named fields) or, for an open type, several of them. Follows sigs.k8s.io/structured-merge-diff `schema`; the conversion
from OpenAPI follows k8s.io/kube-openapi `schemaconv`. Atoms are independent of Python classes, so custom resources have
them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from steersman.work.bounded_cache import BoundedCache
from steersman.work.threads import give_way, paced

from .field_set import LEAF, Node
from .path_elements import SELF, json_text, order, value_text
from .typed_error import TypedError

NUMERIC: Final = "numeric"
STRING: Final = "string"
BOOLEAN: Final = "boolean"
UNTYPED: Final = "untyped"

_MAX_SHAPES: Final = 256
_REMEMBERED: Final = 1024
"""Characters in the names of the largest shape, or in the elements of the largest list, that is cached. Clients choose
them.
"""
_MAX_TEXTS: Final = 512
_SHORT: Final = 128

Cover = Callable[[Any], Node]
Shape = tuple[dict[str, Any], "tuple[tuple[str, str, Cover, Kind], ...]"]
"""The node of a map by the names of its members, and the members whose nodes depend on their values."""
SetShape = tuple[dict[str, Any], dict[str, Any], "tuple[tuple[str, str, Atom, bool], ...]"]
"""The node of a map's set fields, without and with the map itself. Then the members with children: name, element, atom,
and True if the name is a key that clients choose.
"""
Places = tuple[tuple[str, int], ...]


class Atom:
    """The possible forms of a value. `leaf` is True if a value is owned as a whole whatever its form."""

    __slots__ = ("kind", "leaf", "list", "map", "scalar")

    def __init__(self, scalar: str = "", list: ListType | None = None, map: MapType | None = None) -> None:
        self.scalar = scalar
        self.list = list
        self.map = map
        self.leaf = False
        self.kind: Kind = self
        """The map or list that a value must be; the atom itself if several forms are possible, or only a scalar."""
        self.seal()

    def seal(self) -> None:
        """Compute `leaf` and `kind`, once all parts are set."""
        granular_list = self.list is not None and not self.list.atomic
        granular_map = self.map is not None and not self.map.atomic
        self.leaf = not granular_list and not granular_map
        self.kind = self if self.map and self.list else self.map or self.list or self

    def granular(self, value: Any) -> MapType | ListType | None:
        """Return the map or list of a value if its parts are owned separately, otherwise None."""
        kind: MapType | ListType | None = None
        if value.__class__ is dict:
            kind = self.map
        elif value.__class__ is list:
            kind = self.list
        return None if kind is None or kind.atomic else kind

    def cover_function(self) -> Cover | None:
        """Return the function that computes the node of a value that is added or removed as a whole.

        Returns None if the node is a leaf for any value.
        """
        if self.leaf:
            return None
        if self.list is None and self.map is not None:
            return self.map.cover
        if self.map is None and self.list is not None:
            return self.list.cover
        return self.cover

    def cover(self, value: Any) -> Node:
        """Return the node of a value that is added or removed as a whole."""
        kind = self.granular(value)
        return LEAF if kind is None else kind.cover(value)

    def fields(self, value: Any, *, member: bool = False) -> Node | None:
        """Return the node of the fields that a value sets, None if it sets none. See `typed_value.field_set`.

        With `member` the value itself is in the set, as list items and values under map keys are.
        """
        if self.leaf:
            return LEAF
        kind: MapType | ListType | None = None
        if type(value) is dict and self.map is not None:
            kind = self.map
        elif type(value) is list and self.list is not None:
            kind = self.list
        elif value is not None and self.scalar:
            return LEAF
        else:
            kind = self.list if self.map is None and not self.scalar else self.map
        if kind is None or kind.atomic:
            return LEAF
        return kind.fields(value, member=member)

    def become(self, other: Atom) -> None:
        """Take over the content of another atom, for types that refer to themselves."""
        self.scalar, self.list, self.map = other.scalar, other.list, other.map
        self.seal()


class MapType:
    """A struct or a map: atoms of its named fields, and of all other members (None if others are not allowed)."""

    __slots__ = ("_set_shapes", "atomic", "element", "named", "shapes")

    def __init__(self, named: Mapping[str, Atom], element: Atom | None, *, atomic: bool = False) -> None:
        self.named = named
        self.element = element
        self.atomic = atomic
        self.shapes: BoundedCache[tuple[str, ...], Shape] = BoundedCache(_MAX_SHAPES)
        """Cached shapes by the names of the members."""
        self._set_shapes: BoundedCache[tuple[str, ...], SetShape] = BoundedCache(_MAX_SHAPES)

    def child(self, name: str) -> tuple[str, Atom | None]:
        """Return the path element and the atom of a member; the atom is None if such a member is not allowed."""
        return "f:" + name, self.named.get(name, self.element)

    def fields(self, value: Any, *, member: bool) -> Node | None:
        """Return the node of the fields that a map sets, as `Atom.fields`. An empty map sets at most itself."""
        if not value or type(value) is not dict:
            return LEAF if member else None
        names = tuple(value)
        shape = self._set_shapes[names]
        if shape is None:
            shape = self._set_shape(names)
        below, with_self, inner = shape
        node = with_self if member else below
        if not inner:
            return node
        out = dict(node)
        for name, element, child, is_open in inner:
            item = value[name]
            kind = child.kind
            if kind.__class__ is MapType and item.__class__ is dict:
                found_node = kind.fields(item, member=is_open)
            else:
                found_node = child.fields(item, member=is_open)
            if found_node:
                out[element] = found_node
            elif found_node is None and not (is_open or item is None or item == {}):
                del out[element]
        if member:
            return out if len(out) > 1 else LEAF
        return out or None

    def _set_shape(self, names: tuple[str, ...]) -> SetShape:
        below: dict[str, Any] = {}
        inner: list[tuple[str, str, Atom, bool]] = []
        for name in sorted(names):
            element, child = self.child(name)
            below[element] = LEAF
            if child is not None and not child.leaf:
                inner.append((name, element, child, name not in self.named))
        shape = (below, {SELF: LEAF, **below}, tuple(inner))
        if sum(map(len, names)) <= _REMEMBERED:
            self._set_shapes.keep(names, shape)
        return shape

    def cover(self, value: Any) -> Node:
        """Return the node of a map that is added or removed as a whole: the map and all parts are members.

        Most objects of a type have one of a few sets of members, so the common part of the node is cached.
        """
        if not value or type(value) is not dict:
            return LEAF
        names = tuple(value)
        node, inner = self.shapes[names] or self.shape(names)
        if not inner:
            return node
        out = dict(node)
        for name, element, cover, _ in inner:
            out[element] = cover(value[name])
        return out

    def shape(self, names: tuple[str, ...]) -> Shape:
        """Compute and cache the shape of maps with members of these names."""
        node: dict[str, Any] = {SELF: LEAF}
        inner: list[tuple[str, str, Cover, Kind]] = []
        for name in sorted(names):
            element, child = self.child(name)
            node[element] = LEAF
            cover = None if child is None else child.cover_function()
            if cover is not None and child is not None:
                inner.append((name, element, cover, child.kind))
        shape = (node, tuple(inner))
        if sum(map(len, names)) <= _REMEMBERED:
            self.shapes.keep(names, shape)
        return shape


class ListType:
    """A list: atomic, a set of scalars (without keys), or a list of items identified by the values of some fields."""

    __slots__ = ("_known", "_names", "_parts", "_places", "atomic", "element", "keys")

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
        self._parts = [(name, json_text(name) + ":", (defaults or {}).get(name)) for name in sorted(self.keys)]
        self._names = tuple(name for name, _, _ in self._parts)
        self._known: BoundedCache[tuple[Any, ...], str] = BoundedCache(_MAX_TEXTS)
        self._places: BoundedCache[tuple[str, ...], Places] = BoundedCache(_MAX_SHAPES)

    def element_of(self, item: Any) -> str:
        """Return the path element of an item. Raises TypedError if it has no valid key."""
        return self.elements_of((item,))[0]

    def elements_of(self, items: Sequence[Any]) -> list[str]:
        """Return the path elements of some items. Raises TypedError if an item has no valid key."""
        if not self._names:
            return [value_text(item) for item in items]
        known, keyed = self._known, self._keyed
        try:
            out: list[str] = []
            for item in items:
                out.append(known[tuple(map(item.get, self._names))] or keyed(item))
            return out
        except (AttributeError, TypeError):
            # An item is not an object, or a key is not a scalar.
            return [keyed(item) for item in items]

    def _keyed(self, item: Any) -> str:
        give_way()
        if type(item) is not dict:
            what = "a null element" if item is None else "non-map elements"
            raise TypedError(f"associative list with keys may not have {what}")
        texts: list[str] = []
        is_short = True
        for name, prefix, default in self._parts:
            value = item.get(name, default)
            if value is None and name not in item:
                is_short = False
                continue
            is_short = (
                is_short and name in item and (type(value) is int or (type(value) is str and len(value) < _SHORT))
            )
            texts.append(prefix + json_text(value))
        if not texts:
            names = " ".join(json_text(name) for name in self.keys)
            raise TypedError(
                f"associative list with keys has an element that omits all key fields [{names}]"
                " (and doesn't have default values for any key fields)"
            )
        element = f"k:{{{','.join(texts)}}}"
        if is_short:
            # Mostly names and ports, few in number and often the same.
            self._known.keep(tuple([item[name] for name in self._names]), element)
        return element

    def cover(self, value: Any) -> Node:
        """Return the node of a list that is added or removed as a whole. Items with the same key are one leaf."""
        if not value or type(value) is not list:
            return LEAF
        elements = tuple(self.elements_of(value))
        places = self._places[elements]
        if places is None:
            places = self._place(elements)
        cover = self.element.cover_function()
        out: dict[str, Any] = {SELF: LEAF}
        for element, index in paced(places):
            out[element] = LEAF if cover is None or index < 0 else cover(value[index])
        return out

    def fields(self, value: Any, *, member: bool) -> Node | None:
        """Return the node of all items of a list, as `Atom.fields`. Items with the same key are one leaf."""
        if not value or type(value) is not list:
            return LEAF if member else None
        elements = tuple(self.elements_of(value))
        places = self._places[elements]
        if places is None:
            places = self._place(elements)
        child = self.element
        out: dict[str, Any] = {SELF: LEAF} if member else {}
        for element, index in paced(places):
            out[element] = LEAF if child.leaf or index < 0 else child.fields(value[index], member=True) or LEAF
        return out

    def _place(self, elements: tuple[str, ...]) -> Places:
        """Return the elements in the order of FieldsV1 with their indexes in the list, -1 for repeated elements."""
        index_of: dict[str, int] = {}
        for index, element in enumerate(elements):
            index_of[element] = -1 if element in index_of else index
        places = tuple((element, index_of[element]) for element in sorted(index_of, key=order))
        if sum(map(len, elements)) <= _REMEMBERED:
            self._places.keep(elements, places)
        return places


Kind = MapType | ListType | Atom
"""A map, a list, or an atom that may be several forms."""


class Schema:
    """The schema of a kind in one version. Schemas are compared by identity."""

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
"""Atoms of arbitrary values. The first is owned as a whole. Of the second, maps are owned member by member and lists
are atomic.
"""

DEDUCED: Final = Schema(DEDUCED_ATOM)
"""The schema of kinds without a declared schema."""
