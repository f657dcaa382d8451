"""Fields that an import leaves out."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from steersman.work.patterns import late_pattern

_STEP: Final = late_pattern(r"\.?(?:([^\[\].]+)|\[([^\[\]]+)\])")
_KEPT: Final = frozenset({"apiVersion", "kind", "metadata"})
"""Members without which an object cannot be read again."""
_KEPT_METADATA: Final = frozenset({"name", "namespace", "uid"})


class FieldError(ValueError):
    """The error for text that is no path of a field, or of a field that every object needs."""


class LeftOut(NamedTuple):
    """A field that is left out: of one resource (`secrets`, `deployments.apps`), or of all without one."""

    resource: str
    path: tuple[str, ...]


def parse_field(text: str) -> LeftOut:
    """Return a field from text such as `metadata.managedFields`, `secrets:data` or `metadata.annotations[a.b/c]`.

    Raises FieldError.
    """
    resource, colon, path = text.partition(":") if ":" in text.partition("[")[0] else ("", "", text)
    names: list[str] = []
    at = 0
    while found := _STEP.match(path, at):
        names.append(found[1] or found[2])
        at = found.end()
    if not names or at != len(path) or (colon and not resource):
        raise FieldError(f"{text!r} is no field: write [RESOURCE:]a.b, and names with dots as a[b.c/d]")
    if (len(names) == 1 and names[0] in _KEPT) or (
        len(names) == 2 and names[0] == "metadata" and names[1] in _KEPT_METADATA
    ):
        raise FieldError(f"{text!r} is needed to read the objects again")
    return LeftOut(resource, tuple(names))


def leave_out(obj: Any, path: tuple[str, ...]) -> None:
    """Remove a field from an object, and from each item of the lists on its path."""
    if isinstance(obj, list):
        for each in obj:
            leave_out(each, path)
    elif isinstance(obj, dict):
        if len(path) == 1:
            obj.pop(path[0], None)
        elif path[0] in obj:
            leave_out(obj[path[0]], path[1:])
