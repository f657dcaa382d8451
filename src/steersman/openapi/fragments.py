"""The v2 document out of parts that are encoded already: it is joined, not encoded as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from steersman.openapi.sources import Tree

SECTIONS: Final = ("definitions", "parameters", "paths")


@dataclass(frozen=True, slots=True)
class Fragments:
    """A part of a v2 document: in each section the members it adds, in JSON, by name."""

    definitions: Mapping[str, bytes] = field(default_factory=dict)
    parameters: Mapping[str, bytes] = field(default_factory=dict)
    paths: Mapping[str, bytes] = field(default_factory=dict)


def of_document(document: Tree) -> Fragments:
    """Those of a v2 document; what else is in it counts for nothing."""
    return Fragments(**{
        section: {name: orjson.dumps(member) for name, member in document.get(section, {}).items()}
        for section in SECTIONS
    })  # fmt: skip


def merged(parts: Sequence[Fragments]) -> Fragments:
    """All of them, by name; the first to have a member of a name wins."""
    found: dict[str, dict[str, bytes]] = {section: {} for section in SECTIONS}
    for part in reversed(parts):
        for section, members in found.items():
            members.update(getattr(part, section))
    return Fragments(**{section: dict(sorted(members.items())) for section, members in found.items()})


def joined(whole: Fragments, rest: Tree) -> bytes:
    """The document in JSON: its sections and what else it has, in order."""
    return b"{" + b",".join(_members(whole, rest)) + b"}"


def _members(whole: Fragments, rest: Tree) -> Iterator[bytes]:
    for name in sorted((*SECTIONS, *rest)):
        if name in rest:
            yield b"%b:%b" % (orjson.dumps(name), orjson.dumps(rest[name]))
        else:
            members = (b"%b:%b" % (orjson.dumps(key), value) for key, value in getattr(whole, name).items())
            yield b"%b:{%b}" % (orjson.dumps(name), b",".join(members))


def tree_of(whole: Fragments, rest: Tree) -> Tree:
    """The same document, decoded."""
    sections = {
        section: {name: orjson.loads(member) for name, member in getattr(whole, section).items()}
        for section in SECTIONS
    }  # fmt: skip
    return dict(sorted({**rest, **sections}.items()))
