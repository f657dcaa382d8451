"""A kind whose objects are dicts, for schemas that no built-in kind has."""

from __future__ import annotations

from typing import Any

from steersman.machinery.codec.strict import Decoded
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.managed_fields import Schema, differing_dicts, plain_object

Plain = dict[str, Any]


class PlainKind:
    """An `OwnedKind` of one schema: e.x/v1, Foo."""

    gvk = GroupVersionKind("e.x", "v1", "Foo")
    api_version = "e.x/v1"

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.empty: Plain = {}

    def new(self) -> Plain:
        return {}

    def owned(self, obj: Plain) -> Plain:
        return plain_object(obj)

    def differing(self, old: Plain, new: Plain) -> tuple[Plain, Plain]:
        return differing_dicts(old, new)

    def from_plain(self, data: Plain) -> Decoded[Plain]:
        return Decoded(data)
