"""Members by the names of those around them: the paths of the scale subresource, `.spec.replicas`.

Follows k8s.io/apimachinery `apis/meta/v1/unstructured/helpers.go` and its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steersman.machinery.errors.go_print import go_type, go_value

_INT64: Final = 2**63


class NestedFieldError(ValueError):
    """A value on the way, or the one looked for, is of another type; the message is upstream's."""


def split_path(path: str) -> list[str]:
    """The names in a path that begins with a dot."""
    return path.removeprefix(".").split(".")


def nested_field(data: Any, names: Sequence[str], kind: type[int] | type[str] | None = None) -> Any:
    """The value under these names, None if there is none or it is null.

    `kind`: what it must be, unless it is missing; null is not that either. Raises NestedFieldError.
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
        value = float(value)  # as Go's decoder has it
    if kind is not None and type(value) is not kind:
        raise _wrong(names, value, "int64" if kind is int else "string")
    return value


def _wrong(names: Sequence[str], value: Any, expected: str) -> NestedFieldError:
    at = "." + ".".join(names)
    return NestedFieldError(
        f"{at} accessor error: {go_value(value)} is of the type {go_type(value)}, expected {expected}"
    )
