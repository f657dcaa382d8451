"""Nested members by a sequence of names: the paths of the scale subresource, such as `.spec.replicas`.

Follows k8s.io/apimachinery `apis/meta/v1/unstructured/helpers.go` and its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steersman.machinery.errors.go_print import go_type, go_value

_INT64: Final = 2**63


class NestedFieldError(ValueError):
    """The error for a value of the wrong type on the path or at its end, with upstream's message."""


def split_path(path: str) -> list[str]:
    """Return the names in a path that begins with a dot."""
    return path.removeprefix(".").split(".")


def nested_field(data: Any, names: Sequence[str], kind: type[int] | type[str] | None = None) -> Any:
    """Return the value under these names, None if it is missing or null.

    `kind` is the required type, also for null, but not for a missing value. Raises NestedFieldError.
    """
    value = data
    for index, name in enumerate(names):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(names[: index + 1], value, "map[string]interface{}")
        if name not in value:
            return None
        value = value[name]
    if type(value) is int and not -_INT64 <= value < _INT64:
        value = float(value)  # as Go's decoder does
    if kind is not None and type(value) is not kind:
        raise _wrong(names, value, "int64" if kind is int else "string")
    return value


def _wrong(names: Sequence[str], value: Any, expected: str) -> NestedFieldError:
    at = "." + ".".join(names)
    return NestedFieldError(
        f"{at} accessor error: {go_value(value)} is of the type {go_type(value)}, expected {expected}"
    )
