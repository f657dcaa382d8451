"""Conflicts of an apply with fields of other managers, and their messages (apimachinery `managedfields/internal`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import Cause, StatusError, apply_conflict

from .field_set import FieldSet, paths
from .managers import UPDATE, ManagerKey
from .path_elements import display

CONFLICT_REASON: Final = "FieldManagerConflict"


class ApplyConflicts(Exception):
    """The error of an apply that would change fields of other managers. `fields` has these fields by manager."""

    def __init__(self, fields: Mapping[ManagerKey, FieldSet]) -> None:
        super().__init__("the apply conflicts with other managers")
        self.fields = fields

    def status(self) -> StatusError:
        """Return a 409 Conflict with a cause for every field."""
        conflicts = [(_shown(key), path) for key, path in self._each()]
        causes = [Cause(CONFLICT_REASON, f"conflict with {manager}", path) for manager, path in conflicts]
        return apply_conflict(_message(conflicts), causes)

    def _each(self) -> Iterator[tuple[ManagerKey, str]]:
        for key in sorted(self.fields, key=lambda each: each.identifier):
            for path in paths(self.fields[key]):
                yield key, "".join(display(element) for element in path)


def _shown(key: ManagerKey) -> str:
    text = quote(key.manager)
    if key.subresource:
        text = f"{text} with subresource {quote(key.subresource)}"
    return f"{text} using {key.api_version}" if key.operation == UPDATE else text


def _message(found: Sequence[tuple[str, str]]) -> str:
    if len(found) == 1:
        manager, path = found[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
    lines: list[str] = []
    titled: set[str] = set()
    for manager, path in found:
        if manager not in titled:
            titled.add(manager)
            lines.append(f"conflicts with {manager}:")
        lines.append(f"- {path}")
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
