"""Words for a name that is not known: the names that there are, and the one that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

_UNKNOWN: Final = re.compile("Object contains unknown field `([^`]*)`")
_NONE_OF: Final = re.compile("Invalid enum value '?([^']*)'?")
_STEP: Final = re.compile(r"\[[^\]]*\]|\.")
_LONGEST: Final = 100
"""Characters of a name that is compared with others, which takes the square of its length."""


def did_you_mean(name: str, known: Iterable[str], mark: str = "") -> str:
    """Return `, did you mean X?` with the known name that is most like this one, or nothing if none is. `mark` stands
    before and behind the name, or before it if it is `--`."""
    from difflib import get_close_matches  # which no start needs

    if len(name) > _LONGEST:
        return ""
    by_small_letters = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), by_small_letters, 1)
    if not near:
        return ""
    return f", did you mean {mark}{by_small_letters[near[0]]}{'' if mark == '--' else mark}?"


def known_are(name: str, known: Iterable[str]) -> str:
    """Return what is put behind a message of upstream about a name: those that there are, and the one meant perhaps."""
    names = sorted(known)
    return f"; known are {', '.join(names)}{did_you_mean(name, names)}"


def none_of(value: object, allowed: Iterable[str]) -> str:
    """Return the message about a value that is none of those allowed."""
    names = list(allowed)
    return f"{value!r} is none of {', '.join(names)}{did_you_mean(str(value), names)}"


def explained(error: msgspec.ValidationError, cls: type[msgspec.Struct]) -> str:
    """Return what is wrong with a document that is no `cls`: where, what, and which keys or values there are instead of
    one that is not known."""
    what, _, where = str(error).partition(" - at `$")
    where = where.strip("`.")
    at = f"{where}: " if where else ""
    value = _NONE_OF.fullmatch(what)
    allowed = _values(_type_at(cls, where)) if value is not None else []
    if value is not None and allowed:
        return f"{at}{none_of(value[1], allowed)}"
    found = _UNKNOWN.fullmatch(what)
    if found is None:
        return f"{at}{what}"
    known = _members(cls, where)
    return f"{at}unknown key {found[1]!r}{known_are(found[1], known) if known else ''}"


def _members(cls: type[msgspec.Struct], where: str) -> list[str]:
    """Return the keys of the struct at a path, none if it is no struct."""
    here = _struct_in(_type_at(cls, where))
    return [] if here is None else [each.encode_name for each in msgspec.structs.fields(here)]


def _type_at(cls: type[msgspec.Struct], where: str) -> Any:
    """Return the annotation of a path, None where there is none."""
    here: Any = cls
    for step in filter(None, _STEP.split(where)):
        here = _struct_in(here)
        if here is None:
            return None
        here = next((each.type for each in msgspec.structs.fields(here) if each.encode_name == step), None)
    return here


def _values(annotation: Any) -> list[str]:
    """Return the values of an enumeration or a Literal that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(each.value) for each in annotation]
    if get_origin(annotation) is Literal:
        return list(map(str, get_args(annotation)))
    return next((found for each in get_args(annotation) if (found := _values(each))), [])


def _struct_in(annotation: Any) -> type[msgspec.Struct] | None:
    """Return the struct that an annotation names: itself, or what a list, an optional or the like has of them."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    return next((found for each in get_args(annotation) if (found := _struct_in(each)) is not None), None)
