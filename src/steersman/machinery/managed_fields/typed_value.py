"""Validation of values against a schema, and the fields that values set (structured-merge-diff `typed`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from steersman.machinery.errors.go_print import GoValue, go_source, go_type, go_value
from steersman.work.threads import give_way, paced

from .field_set import EMPTY, LEAF, FieldSet, Node
from .path_elements import SELF, display
from .schema import BOOLEAN, NUMERIC, STRING, UNTYPED, Atom, Kind, ListType, MapType, Schema
from .typed_error import TypedError


def validate(atom: Atom, value: Any, *, allow_duplicates: bool = False) -> None:
    """Raise TypedError with every place where the value does not fit."""
    if _fits(atom, value, allow_duplicates):
        return
    errors = [f"{path}: {what}" if path else what for path, what in _errors(atom, value, allow_duplicates)]
    if errors:
        raise TypedError(*errors)


def fits(schema: Schema, value: Any) -> bool:
    """Return True if a value fits a schema; repeated list items are allowed."""
    return _fits(schema.root, value, True)


def validate_lists(atom: Atom, value: Any) -> None:
    """Validate a value whose class already fits the schema: only keys of list items may be invalid.

    Raises TypedError with every place where the value does not fit.
    """
    kinds: list[Kind] = [atom.kind]
    values = [value]
    try:
        for kind, each in zip(kinds, values, strict=False):  # both lists grow during the loop
            if each.__class__ is dict and kind.__class__ is MapType:
                named, element = members_with_lists(kind)
                for name in named.keys() & each.keys():
                    kinds.append(named[name])
                    values.append(each[name])
                if element is not None:
                    others = each.keys() - kind.named.keys()
                    kinds += [element] * len(others)
                    values += [each[name] for name in others]
            elif each.__class__ is list and kind.__class__ is ListType:
                give_way()
                kind.elements_of(each)
                if has_lists(kind.element):
                    kinds += [kind.element.kind] * len(each)
                    values += each
            elif kind.__class__ is Atom and (inner := kind.granular(each)) is not None:
                kinds.append(inner)
                values.append(each)
    except TypedError:
        validate(atom, value, allow_duplicates=True)


@lru_cache(maxsize=4096)
def members_with_lists(kind: MapType) -> tuple[dict[str, Kind], Kind | None]:
    """Return the named members that are lists with keys or may have some below them, and the element if it may."""
    named = {name: child.kind for name, child in kind.named.items() if has_lists(child)}
    return named, kind.element.kind if kind.element is not None and has_lists(kind.element) else None


@lru_cache(maxsize=4096)
def has_lists(atom: Atom) -> bool:
    """Return True if a value may be a list whose items are owned separately, or have one below it."""
    found = [atom]
    seen = {atom}
    for each in found:  # which grows during the loop
        if each.list is not None and not each.list.atomic:
            return True
        below = [] if each.map is None or each.map.atomic else [*each.map.named.values(), each.map.element]
        for child in below:
            if child is not None and child not in seen:  # types may refer to themselves
                seen.add(child)
                found.append(child)
    return False


Found = Iterator[tuple[str, str]]


def kind_of(atom: Atom, value: Any) -> MapType | ListType | str:
    """Return the form of an atom for a value: its map, its list, or the name of its scalar.

    For null the first of these that the atom has counts.
    """
    if isinstance(value, dict):
        if atom.map is not None:
            return atom.map
    elif isinstance(value, list):
        if atom.list is not None:
            return atom.list
    elif value is not None and atom.scalar and not isinstance(value, GoValue):
        return atom.scalar
    if atom.map is not None:
        return atom.map
    if atom.scalar or atom.list is None:
        return atom.scalar
    return atom.list


_TEXTS: Final = frozenset((STRING, UNTYPED))
_STR: Final = frozenset((str,))
_SCALARS: Final[Mapping[type, frozenset[str]]] = {
    str: _TEXTS,
    int: frozenset((NUMERIC, UNTYPED)),
    float: frozenset((NUMERIC, UNTYPED)),
    bool: frozenset((BOOLEAN, UNTYPED)),
}


def _fits(atom: Atom, value: Any, allow_duplicates: bool) -> bool:
    """Return True if there are no errors, faster than finding them."""
    if value is None:
        return True
    if type(value) is dict:
        kind = atom.map
        if kind is None:
            return False
        named, rest = kind.named, kind.element
        if not named and rest is not None and rest.scalar in _TEXTS and _STR.issuperset(map(type, value.values())):
            return True  # most maps, such as labels, are of text only
        for name, item in value.items():
            child = named.get(name, rest)
            if child is None:
                return False
            if type(item) is str:
                if child.scalar not in _TEXTS:
                    return False
            elif not _fits(child, item, allow_duplicates):
                return False
        return True
    if type(value) is list:
        return atom.list is not None and _list_fits(atom.list, value, allow_duplicates)
    return atom.scalar in _SCALARS.get(type(value), ())


def _list_fits(kind: ListType, value: list[Any], allow_duplicates: bool) -> bool:
    if not kind.atomic:
        try:
            elements = kind.elements_of(value)
        except TypedError:
            return False
        if not allow_duplicates and len(set(elements)) < len(elements):
            return False
    return all(_fits(kind.element, item, allow_duplicates) for item in paced(value))


def _errors(atom: Atom, value: Any, allow_duplicates: bool) -> Found:
    kind = kind_of(atom, value)
    if value is None:
        return
    if isinstance(kind, MapType):
        if not isinstance(value, dict):
            yield "", f"expected map, got &{{{go_value(value)}}}"
        else:
            yield from _map_errors(kind, value, allow_duplicates)
    elif isinstance(kind, ListType):
        if not isinstance(value, list):
            yield "", f"expected list, got &{{{go_value(value)}}}"
        else:
            yield from _list_errors(kind, value, allow_duplicates)
    else:
        yield from _scalar_errors(kind, value)


def _map_errors(kind: MapType, value: dict[str, Any], allow_duplicates: bool) -> Found:
    for name in sorted(value):
        child = kind.child(name)[1]
        if child is None:
            yield f".{name}", "field not declared in schema"
            return
        for path, what in _errors(child, value[name], allow_duplicates):
            yield f".{name}{path}", what


def _list_errors(kind: ListType, value: list[Any], allow_duplicates: bool) -> Found:
    seen: set[str] = set()
    for index, item in enumerate(paced(value)):
        where = f"[{index}]"
        if not kind.atomic:
            try:
                element = kind.element_of(item)
            except TypedError as error:
                yield "", f"element {index}: {error}"
                return
            where = display(element)
            if element in seen and not allow_duplicates:
                yield "", f"duplicate entries for key {where}"
            seen.add(element)
        for path, what in _errors(kind.element, item, allow_duplicates):
            yield where + path, what


def _scalar_errors(scalar: str, value: Any) -> Found:
    is_boolean = isinstance(value, bool)
    is_number = isinstance(value, int | float) and not is_boolean
    match scalar:
        case "numeric" if not is_number:
            yield "", f"expected numeric (int or float), got {go_type(value)}"
        case "string" if not isinstance(value, str):
            yield "", f"expected string, got &value.valueUnstructured{{Value:{go_source(value)}}}"
        case "boolean" if not is_boolean:
            yield "", f"expected boolean, got &{{{go_value(value)}}}"
        case "untyped" if isinstance(value, dict | list | GoValue):
            yield "", f"expected any scalar, got &{{{go_value(value)}}}"


def field_set(atom: Atom, value: Any) -> FieldSet:
    """Return the fields that a value sets: leaves, list items, keys of maps and empty structs.

    The root itself is never in the set, because nobody owns a whole object. Raises TypedError for invalid item keys.
    """
    return atom.fields(value) or EMPTY


def _as_member(node: Node | None) -> Node:
    if not node:
        return LEAF
    return node if SELF in node else {SELF: LEAF, **node}


def with_named_fields(atom: Atom | None, fields: Node) -> Node:
    """Return a set to which the structs above its members are added, and lists and maps that are fields of structs."""
    out: dict[str, Any] = {}
    for element, node in fields.items():
        if not node or element == SELF:
            out[element] = node
            continue
        child, is_named = _below(atom, element)
        inner = with_named_fields(child, node)
        out[element] = _as_member(inner) if is_named else inner
    return out


def _below(atom: Atom | None, element: str) -> tuple[Atom | None, bool]:
    """Return the atom at a path element, and True if the element is a named field."""
    if atom is None:
        return None, False
    if element[0] == "f" and atom.map is not None:
        name = element[2:]
        return atom.map.child(name)[1], name in atom.map.named
    if element[0] == "k" and atom.list is not None:
        return atom.list.element, False
    return None, False
