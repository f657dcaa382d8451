"""Parameters of operations, derived from the types of request options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from steersman.machinery.codec.go_types import GoType, members_of, struct

_TYPES: Final = {"string": "string", "bool": "boolean", "int32": "integer", "int64": "integer"}
_TYPE_META: Final = ("kind", "apiVersion")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a path or query. `options` is the options type that has it, e.g. "meta.v1.ListOptions"."""

    name: str
    type: str = "string"
    place: str = "query"
    options: str = ""

    @property
    def order(self) -> tuple[str, str]:
        """Return the sort key: name and place."""
        return self.name, self.place


NAME: Final = Parameter("name", place="path")
NAMESPACE: Final = Parameter("namespace", place="path")
PATH: Final = Parameter("path", place="path")
PRETTY: Final = Parameter("pretty")
VERSION: Final = Parameter("resourceVersion", options="meta.v1.ListOptions")


@cache
def options(*types: str) -> tuple[Parameter, ...]:
    """Return the query parameters of option types, leaving out members that a query cannot express.

    If several types have a parameter, the first counts.
    """
    found: dict[str, Parameter] = {}
    for type_name in types:
        for name, member in members_of(struct(type_name)).items():
            type_ = _type(member.type)
            if type_ and name not in _TYPE_META:
                found.setdefault(name, Parameter(name, type_, options=type_name))
    return tuple(found.values())


def _type(type_: GoType) -> str:
    if type_.kind == "list" and type_.element is not None:
        return _TYPES.get(type_.element.kind, "")
    return _TYPES.get(type_.kind, "")


def in_order(parameters: Iterable[Parameter]) -> list[Parameter]:
    """Return the parameters sorted by name."""
    return sorted(parameters, key=_order)


def _order(parameter: Parameter) -> tuple[str, str]:
    return parameter.order


def head(parameter: Parameter) -> dict[str, Any]:
    """Return the members that v2 and v3 share, in order, up to the type."""
    found: dict[str, Any] = {"in": parameter.place, "name": parameter.name}
    if parameter.place == "path":
        found["required"] = True
    return found
