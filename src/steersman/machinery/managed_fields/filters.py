"""Which fields a strategy resets before it stores an object, so that no writer comes to own them.

A filter takes a field set and returns what is left of it (structured-merge-diff `fieldpath.Filter`).
"""

from __future__ import annotations

from collections.abc import Callable

from .field_set import FieldSet, recursive_difference, set_of

Filter = Callable[[FieldSet], FieldSet]


def excluding(*paths: str) -> Filter:
    """Leaves out some fields and all below them: `excluding("status", "metadata/labels")`."""
    excluded = set_of(tuple("f:" + name for name in path.split("/")) for path in paths)
    return lambda fields: recursive_difference(fields, excluded)
