"""Access to parts of values, and the choice of an overload of a function by the types of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from steersman.cel.ast import OF_VALUES, Expr, Operator
from steersman.cel.environment import Overload
from steersman.cel.macros import MAP_INSERT
from steersman.cel.types import Kind
from steersman.cel.values import (
    EvaluationError,
    UInt,
    find_key,
    is_instance,
    is_map,
    print_value,
    type_of_value,
)


def find_field(container: Any, field: str) -> tuple[Any, Any] | None:
    """Return the entry of a map or an object; None if there is none, and for other values."""
    return find_key(container, field) if is_map(container) else None


def find_item(container: Any, key: Any) -> tuple[Any, Any] | None:
    """Return the element of a list or a map; None if there is none, and for other values. Raises EvaluationError for a
    value that cannot be an index.
    """
    if isinstance(container, list | tuple):
        kind = type(key)
        if kind is float:
            if not key.is_integer():
                raise EvaluationError(f"unsupported index value {print_value(key)} in list")
            key = int(key)
        elif kind is not int and kind is not UInt:
            raise EvaluationError(f"unsupported index type '{type_of_value(key).name}' in list")
        return (key, container[key]) if 0 <= key < len(container) else None
    return find_key(container, key) if is_map(container) else None


def iterate(container: Any, *, two: bool) -> Iterable[tuple[Any, Any]]:
    """Return the values of the variables of a loop. Raises EvaluationError."""
    if isinstance(container, list | tuple):
        return enumerate(container) if two else ((value, None) for value in container)
    if is_map(container):
        return list(container.items()) if two else [(key, None) for key in container]
    kind = type_of_value(container).name
    raise EvaluationError(f"got '{_GO_NAMES.get(kind, f'types.{kind}')}', expected iterable type")


_GO_NAMES: Final = {
    "bool": "types.Bool",
    "bytes": "types.Bytes",
    "double": "types.Double",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "int": "types.Int",
    "null_type": "types.Null",
    "optional_type": "*types.Optional",
    "string": "types.String",
    "type": "*types.Type",
    "uint": "types.Uint",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.URL": "cel.URL",
    "kubernetes.authorization.Authorizer": "library.authorizerVal",
    "kubernetes.authorization.Decision": "library.decisionVal",
    "kubernetes.authorization.GroupCheck": "library.groupCheckVal",
    "kubernetes.authorization.PathCheck": "library.pathCheckVal",
    "kubernetes.authorization.ResourceCheck": "library.resourceCheckVal",
    "net.CIDR": "cel.CIDR",
    "net.IP": "cel.IP",
}


def dispatch(function: str, overloads: list[Overload], args: list[Expr]) -> Callable[..., Any]:
    """Return one function for all overloads that may apply."""
    calls = {overload.call for overload in overloads}
    first = overloads[0]
    is_safe = function in _OPERATORS or not any(_is_open(arg) for arg in args)
    if is_safe and len(calls) == 1 and first.call is not None:
        return first.call
    guarded = [(overload, overload.call) for overload in overloads]

    def dispatch(*values: Any) -> Any:
        for overload, call in guarded:
            if call is not None and (not overload.checks_arguments or all(map(is_instance, values, overload.args))):
                return call(*values)
        if function in _GUARDING_THEMSELVES:
            raise EvaluationError("no such overload")
        given = ", ".join(type_of_value(value).name for value in values)
        raise EvaluationError(f"no such overload: {function}({given})")

    return dispatch


def _is_open(node: Expr) -> bool:
    """Return True if the type is only known from the value."""
    pending = [node.type]
    while pending:
        type = pending.pop()
        # includes times, because those of a namespace are declared as such but are strings
        if type.kind in (Kind.DYN, Kind.ANY, Kind.TYPE_PARAM, Kind.TIMESTAMP):
            return True
        pending.extend(type.params)
    return False


_GUARDING_THEMSELVES: Final = frozenset({"startsWith", "endsWith", "contains", "matches"})
"""Functions of the language whose errors do not list the argument types, as upstream."""

_OPERATORS: Final = OF_VALUES | {Operator.EQUALS, "size", "type", "dyn", MAP_INSERT}
"""Functions that check their arguments themselves."""
