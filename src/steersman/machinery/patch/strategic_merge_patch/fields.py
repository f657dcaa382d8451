"""The Go tags patchStrategy and patchMergeKey, which tell how a field is merged."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from steersman.machinery.codec.go_types import GoMember, GoType, members_of
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import to_lower

MERGE: Final = "merge"
REPLACE: Final = "replace"

_REFLECT_KINDS: Final = {"list": "slice", "bytes": "slice", "any": "interface"}
_UINT8: Final = GoType("uint8", "uint8")


class Field(Struct, frozen=True):
    """A field's type, or the type of its items, and how it is merged.

    `strategy` is "merge", "replace", or empty for the default of the type. `key` identifies items.
    """

    type: GoType
    strategy: str
    key: str


def map_field(parent: GoType, name: str) -> Field:
    """Return a field of `parent` that holds an object. Raises StatusError 500."""
    member = _member(parent, name)
    return Field(member.type, _strategy(member), member.key)


def list_field(parent: GoType, name: str) -> Field:
    """Return a field of `parent` that holds a list, with the type of its items. Raises StatusError 500."""
    member = _member(parent, name)
    type_ = member.type
    if type_.kind == "list":
        assert type_.element is not None
        item = type_.element
        if item.kind == "list":
            raise errors.plain_internal("unexpected slice of slice")
    elif type_.kind == "bytes":
        item = _UINT8
    elif type_.pointer and type_.kind not in ("map", "any"):
        item = type_
    else:
        kind = "ptr" if parent.pointer else "struct"
        raise errors.plain_internal(f"expected slice or array type, but got: {kind}")
    return Field(item, _strategy(member), member.key)


def _strategy(member: GoMember) -> str:
    """Return the strategy without retainKeys, which only tells clients to send that directive."""
    return member.strategy.replace("retainKeys", "").strip(",")


def _member(parent: GoType, name: str) -> GoMember:
    if parent.kind not in ("struct", "own"):
        kind = _REFLECT_KINDS.get(parent.kind, parent.kind)
        raise errors.plain_internal(f"merging an object in json but data type is not struct, instead is: {kind}")
    if parent.kind == "struct":
        members = members_of(parent)
        if (member := members.get(name)) is not None:
            return member
        folded = _folded(name)
        for each, member in members.items():
            if _folded(each) == folded:
                return member
    struct = parent.shown.rpartition(".")[2]
    raise errors.plain_internal(f"unable to find api field in struct {struct} for the json field {quote(name)}")


def _folded(name: str) -> str:
    """Return a name in lower case, as Go's JSON decoder folds it: the long s and the Kelvin sign count as letters."""
    return to_lower(name).replace("\u017f", "s")
