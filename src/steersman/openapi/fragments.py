"""Documents joined from parts that are already encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from steersman.machinery.codec.serializer import decode_plain, encode
from steersman.openapi.sources import Tree
from steersman.work.threads import give_way

SECTIONS: Final = ("definitions", "parameters", "paths")

Members = Mapping[str, "bytes | Members"]
"""A JSON object whose members, or members of members, are already encoded."""


@dataclass(frozen=True, slots=True)
class Fragments:
    """A part of a v2 document: the encoded members that it adds to each section, by name."""

    definitions: Mapping[str, bytes] = field(default_factory=dict)
    parameters: Mapping[str, bytes] = field(default_factory=dict)
    paths: Mapping[str, bytes] = field(default_factory=dict)


def merged(parts: Sequence[Fragments]) -> Fragments:
    """Return the union of all parts; the first part that has a member of a name wins."""
    found: dict[str, dict[str, bytes]] = {section: {} for section in SECTIONS}
    for part in reversed(parts):
        for section, members in found.items():
            members.update(getattr(part, section))
    return Fragments(**found)


def members_v2(whole: Fragments, rest: Tree) -> Members:
    """Return a v2 document from its sections and the encoded rest."""
    return {**{name: getattr(whole, name) for name in SECTIONS}, **{name: encode(rest[name]) for name in rest}}


def members_of(tree: Tree, levels: int = 2) -> Members:
    """Return a JSON object split into encoded members `levels` deep, so that each schema is encoded separately."""
    return {
        name: members_of(value, levels - 1) if levels and isinstance(value, dict) else encode(value)
        for name, value in tree.items()
    }


def joined(members: Members) -> bytes:
    """Return the object as JSON with sorted keys. Everything is copied once."""
    pieces: list[bytes] = []
    _add(pieces, members)
    return b"".join(pieces)


def _add(pieces: list[bytes], members: Members) -> None:
    before = b"{"
    for name in sorted(members):
        give_way()
        value = members[name]
        pieces += (before, encode(name), b":")
        before = b","
        if isinstance(value, bytes):
            pieces.append(value)
        else:
            _add(pieces, value)
    pieces.append(b"}" if members else b"{}")


def decoded(members: Members) -> Tree:
    """Return the decoded object, with its keys sorted."""
    return {name: _decoded(members[name]) for name in sorted(members)}


def _decoded(value: bytes | Members) -> Any:
    give_way()
    return decode_plain(value) if isinstance(value, bytes) else decoded(value)
