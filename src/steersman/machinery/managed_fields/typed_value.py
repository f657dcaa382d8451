"""Values held against a schema: whether they fit, and which fields they set (structured-merge-diff `typed`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.machinery.errors.go_print import GoValue, go_source, go_type, go_value
from steersman.work.threads import paced

from .field_set import EMPTY, LEAF, FieldSet, Node
from .outline import outline
from .path_elements import SELF, display
from .schema import BOOLEAN, NUMERIC, STRING, UNTYPED, Atom, ListType, MapType, Schema
from .typed_error import TypedError


def validate(atom: Atom, value: Any, *, allow_duplicates: bool = False) -> None:
    """Raises TypedError with every place where the value does not fit."""
    if _fits(atom, value, allow_duplicates):
        return
    errors = [f"{path}: {what}" if path else what for path, what in _errors(atom, value, allow_duplicates)]
    if errors:
        raise TypedError(*errors)


def fits(schema: Schema, value: Any) -> bool:
    """Whether a value, of any classes, has those of a schema; items may be there twice."""
    return _fits(schema.root, value, True)


def validate_lists(atom: Atom, value: Any) -> None:
    """The same for what fits as far as its class goes: only items that cannot be told apart may be wrong."""
    try:
        outline(atom.kind, value)
    except TypedError:
        validate(atom, value, allow_duplicates=True)


Found = Iterator[tuple[str, str]]


def kind_of(atom: Atom, value: Any) -> MapType | ListType | str:
    """What an atom is for a value: its map, its list or the name of its scalar. Null may be any of them."""
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
_SCALARS: Final[Mapping[type, frozenset[str]]] = {
    str: _TEXTS,
    int: frozenset((NUMERIC, UNTYPED)),
    float: frozenset((NUMERIC, UNTYPED)),
    bool: frozenset((BOOLEAN, UNTYPED)),
}


def _fits(atom: Atom, value: Any, allow_duplicates: bool) -> bool:
    """Whether there are no errors, found faster than what they are."""
    if value is None:
        return True
    if type(value) is dict:
        kind = atom.map
        if kind is None:
            return False
        named, rest = kind.named, kind.element
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
    """The fields that a value sets: leaves, and what is a member by itself (items, keys of maps, empty structs).

    A leaf for the root says nothing, for nobody owns a whole object. Raises TypedError where items cannot be told
    apart.
    """
    return atom.fields(value) or EMPTY


def _as_member(node: Node | None) -> Node:
    if not node:
        return LEAF
    return node if SELF in node else {SELF: LEAF, **node}


def with_named_fields(atom: Atom | None, fields: Node) -> Node:
    """A set with the structs, and lists and maps that are fields of structs, above its members as members too."""
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
    """The atom at a path element, and whether that is a named field."""
    if atom is None:
        return None, False
    if element[0] == "f" and atom.map is not None:
        name = element[2:]
        return atom.map.child(name)[1], name in atom.map.named
    if element[0] == "k" and atom.list is not None:
        return atom.list.element, False
    return None, False
