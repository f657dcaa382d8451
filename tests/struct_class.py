"""The classes of kinds that are Structs."""

from __future__ import annotations

from typing import TypeVar

from steersman.kinds.kind import Kind
from steersman.kinds.structs import StructKind

T = TypeVar("T")


def struct_class(kind: Kind[T]) -> type[T]:
    """Return the class of a kind's objects. The kind must be one of Structs."""
    assert isinstance(kind, StructKind)
    return kind.cls
