"""Error messages for unknown names that list the known ones and suggest the most similar."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from steersman.work.patterns import late_pattern

_UNKNOWN: Final = late_pattern("Object contains unknown field `([^`]*)`")
_NONE_OF: Final = late_pattern("Invalid enum value '?([^']*)'?")
_STEP: Final = late_pattern(r"\[[^\]]*\]|\.")
_LONGEST: Final = 100
"""Characters of the longest name that is compared with others: comparing takes the square of the length."""


def did_you_mean(name: str, known: Iterable[str], mark: str = "") -> str:
    """Return `, did you mean X?` with the known name that is most similar, or "" if none is.

    `mark` is put before and after the name; the mark `--` only before it.
    """
    from difflib import get_close_matches  # which no start needs

    if len(name) > _LONGEST:
        return ""
    by_small_letters = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), by_small_letters, 1)
    if not near:
        return ""
    return f", did you mean {mark}{by_small_letters[near[0]]}{'' if mark == '--' else mark}?"


def known_names_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the list of the known names, and a suggestion."""
    names = sorted(known)
    return f"; known are {', '.join(names)}{did_you_mean(name, names)}"


def not_allowed_message(value: object, allowed: Iterable[str]) -> str:
    """Return the message about a value that is not among the allowed ones."""
    names = list(allowed)
    return f"{value!r} is none of {', '.join(names)}{did_you_mean(str(value), names)}"


def explain_validation_error(error: msgspec.ValidationError, cls: type[msgspec.Struct]) -> str:
    """Return a readable message for a document that does not decode as `cls`.

    The message has the path and the fault. For an unknown key or value it lists the known ones.
    """
    what, _, where = str(error).partition(" - at `$")
    where = where.strip("`.")
    at = f"{where}: " if where else ""
    value = _NONE_OF.fullmatch(what)
    allowed = _values(_type_at(cls, where)) if value is not None else []
    if value is not None and allowed:
        return f"{at}{not_allowed_message(value[1], allowed)}"
    match = _UNKNOWN.fullmatch(what)
    if match is None:
        return f"{at}{what}"
    known = _members(cls, where)
    return f"{at}unknown key {match[1]!r}{known_names_hint(match[1], known) if known else ''}"


def _members(cls: type[msgspec.Struct], where: str) -> list[str]:
    """Return the keys of the struct at a path, [] if there is no struct."""
    here = _struct_in(_type_at(cls, where))
    return [] if here is None else [each.encode_name for each in msgspec.structs.fields(here)]


def _type_at(cls: type[msgspec.Struct], where: str) -> Any:
    """Return the annotation at a path, None where there is none."""
    here: Any = cls
    for step in filter(None, _STEP.split(where)):
        here = _struct_in(here)
        if here is None:
            return None
        here = next((each.type for each in msgspec.structs.fields(here) if each.encode_name == step), None)
    return here


def _values(annotation: Any) -> list[str]:
    """Return the values of the first enumeration or Literal in an annotation, [] without one."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(each.value) for each in annotation]
    if get_origin(annotation) is Literal:
        return list(map(str, get_args(annotation)))
    return next((values for each in get_args(annotation) if (values := _values(each))), [])


def _struct_in(annotation: Any) -> type[msgspec.Struct] | None:
    """Return the struct in an annotation: the annotation itself, or the item of a list, an optional or the like."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    return next((struct for each in get_args(annotation) if (struct := _struct_in(each)) is not None), None)
