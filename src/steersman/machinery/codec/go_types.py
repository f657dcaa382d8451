"""Go types of the generated classes, in the form that decoding needs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, field

from steersman.api import tables
from steersman.work.patterns import late_pattern

_QUALIFIED = late_pattern(r"(?<![a-z0-9])[a-z0-9]+\.([a-z0-9]+\.[A-Za-z0-9]+)")
_MAP = late_pattern(r"map\[[^\]]*\]")
_NAMED = late_pattern(r"(?:[\w-]+\.){1,2}\w+", re.ASCII)

UNMARSHALERS = frozenset(
    {
        "api.resource.Quantity",
        "meta.v1.Time",
        "meta.v1.MicroTime",
        "meta.v1.Duration",
        "meta.v1.FieldsV1",
        "util.intstr.IntOrString",
        "pkg.runtime.RawExtension",
        "pkg.runtime.Unknown",
        "apiextensions.v1.JSON",
        "apiextensions.v1.JSONSchemaPropsOrArray",
        "apiextensions.v1.JSONSchemaPropsOrBool",
        "apiextensions.v1.JSONSchemaPropsOrStringArray",
    }
)
"""Types with their own UnmarshalJSON. An error in one ends decoding at once."""


class GoType(Struct):
    """A Go type into which values are decoded.

    `kind` is struct, map, list, string, bool, int32, int64, uint8, float64, bytes, any, or `own` for a type with its
    own UnmarshalJSON, told apart by `name`. `shown` is the type as Go prints it. A struct without a generated class has
    its `members` from the start; those of other structs are filled in by `members_of`.
    """

    kind: str
    shown: str
    name: str = ""
    element: GoType | None = None
    pointer: bool = False
    members: dict[str, GoMember] = field(default_factory=dict)
    derived: bool = False
    """True if the type is derived from a class that is not generated (`derived_types`)."""


class GoMember(Struct, frozen=True):
    """A member of a struct: its type and the names of the embedded structs that contain it.

    `strategy` and `key` are the tags patchStrategy and patchMergeKey. `is_required` and `default` (as JSON data) are
    only set for derived types.
    """

    type: GoType
    embedded: tuple[str, ...]
    strategy: str = ""
    key: str = ""
    is_required: bool = False
    default: Any = None


STRING: Final = GoType("string", "string")
BOOL: Final = GoType("bool", "bool")


def shown(type_name: str) -> str:
    """Return a type as Go prints it, with the last element of its package's path: `[]v1.Container`."""
    text = _QUALIFIED.sub(lambda match: match.group(1), type_name)
    return "[]uint8" if text == "bytes" else text.replace("bytes", "[]uint8") if text.startswith("map") else text


@lru_cache(maxsize=4096)
def go_type(module: str, type_name: str) -> GoType:
    """Return the type of a name in the tables of `module`.

    The members of a struct are filled in by `members_of`.
    """
    if type_name.startswith("[]"):
        return GoType("list", shown(type_name), element=go_type(module, type_name[2:]))
    if match := _MAP.match(type_name):
        return GoType("map", shown(type_name), element=go_type(module, type_name[match.end() :]))
    if type_name == "interface {}":
        return GoType("any", type_name)
    if type_name in UNMARSHALERS:
        return GoType("own", shown(type_name), name=type_name)
    if not _NAMED.fullmatch(type_name):
        return GoType(type_name, shown(type_name))
    table = tables.table(module)
    if (underlying := table.scalars.get(type_name)) is not None:
        base = go_type(module, underlying)
        return GoType(base.kind, shown(type_name), base.name, base.element)
    return struct(type_name)


@lru_cache(maxsize=4096)
def struct(type_name: str) -> GoType:
    """Return the type of a struct by its name, e.g. "core.v1.Pod"."""
    return GoType("struct", shown(type_name), name=type_name)


def struct_of(cls: type) -> GoType:
    """Return the struct type of a generated class."""
    return struct(f"{tables.module_of(cls)}.{cls.__name__}")


def members_of(type_: GoType) -> dict[str, GoMember]:
    """Return the members of a struct by their JSON names, including the members of embedded structs."""
    if type_.members:
        return type_.members
    base = struct(type_.name)
    if not base.members:
        base.members = dict(_members(type_.name, ()))
    return base.members


def _members(type_name: str, embedded: tuple[str, ...]) -> list[tuple[str, GoMember]]:
    package, version, name = type_name.split(".")
    module = f"{package}.{version}"
    members: list[tuple[str, GoMember]] = []
    for each in tables.table(module).structs[name]:
        if each.inline:
            members += _members(each.type, (*embedded, each.go))
        elif each.name != "-":
            base = go_type(module, each.type)
            pointer = each.pointer or base.kind in ("list", "map", "bytes", "any")
            type_ = GoType(base.kind, base.shown, base.name, base.element, pointer)
            members.append((each.name, GoMember(type_, embedded, each.strategy, each.key)))
    return members
