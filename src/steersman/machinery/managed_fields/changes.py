"""What an update makes of the entries of an object, remembered: most updates do what others did before them.

A controller that writes the same status fields again and again, or a client that sends an object back with other
values, changes times only. Objects that differ in nothing but who owns them are alike here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.work.bounded_cache import BoundedCache

from .comparison import Comparison
from .field_set import FieldSet
from .managers import MAX_UPDATE_MANAGERS, ManagerKey, in_order_of_entries, key_of_entry
from .remembered import remembered


class Before(Struct, frozen=True):
    """What the entries after a write depend on."""

    state: tuple[object, ...]
    """The entries there were, who writes, and what is changed and removed, without the uid of the owner."""
    owner: bytes
    """The uid of the object's owner where it has one: what is written does not depend on who that is."""


class _After(NamedTuple):
    """An entry there is then."""

    entry: ManagedFieldsEntry
    """Whose fields tell of `_OWNER` where they are those of the owner."""
    fields_of: int
    """The index of the entry before that has the same fields; -1 if none has."""
    time_of: int
    """The index of the entry before that has the same time; -1 is the time of the write."""


_NONE: Final = -1
_OWNER: Final = b"(owner)"
_UID: Final = re.compile(rb'k:\{\\"uid\\":\\"([^"\\]+)\\"\}')
_encode: Final = msgspec.json.Encoder().encode


def before(entries: Sequence[ManagedFieldsEntry], key: ManagerKey, comparison: Comparison) -> Before | None:
    """What the entries after a write by `key` depend on; None where they depend on more than that.

    That are the times of more entries than updates may have, and what an object is in another version.
    """
    if not 0 < len(entries) < MAX_UPDATE_MANAGERS:
        return None
    changes = _encode(comparison.changed), _encode(comparison.removed) if comparison.removed else b"{}"
    parts: list[object] = [key, *changes]
    fields: list[bytes] = []
    for entry in entries:
        if entry.api_version != key.api_version or entry.fields_v1 is None:
            return None
        parts += (entry.manager, entry.operation, entry.subresource, entry.fields_type)
        fields.append(bytes(entry.fields_v1))
    owner = _owner_in(fields)
    if owner and not any(owner in each or _OWNER in each for each in changes):
        return Before((*parts, *(each.replace(owner, _OWNER) for each in fields)), owner)
    return Before((*parts, *fields), b"")


def _owner_in(fields: Sequence[bytes]) -> bytes:
    """The uid that is a key of lists in some FieldsV1, if one is and it stands nowhere else in them."""
    found: set[bytes] = set()
    count = 0
    for each in fields:
        if each.find(b'\\"uid') >= 0:
            uids = _UID.findall(each)
            count += len(uids)
            found.update(uids)
        if each.find(_OWNER) >= 0:
            return b""
    if len(found) != 1:
        return b""
    (owner,) = found
    return owner if sum(each.count(owner) for each in fields) == count else b""


class Changes:
    """The entries after a write, by those before it. For the updates of one version."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: BoundedCache[tuple[object, ...], tuple[_After, ...]] = remembered()

    def after(
        self, found: Before | None, entries: Sequence[ManagedFieldsEntry], time: str
    ) -> list[ManagedFieldsEntry] | None:
        """The entries after a write at `time`; None if that is not known."""
        known = None if found is None else self._known[found.state]
        if known is None or found is None:
            return None
        return in_order_of_entries([_entry(each, entries, time, found.owner) for each in known])

    def keep(
        self,
        found: Before,
        entries: Sequence[ManagedFieldsEntry],
        after: Sequence[ManagedFieldsEntry],
        writer: ManagerKey,
        taken: FieldSet,
    ) -> None:
        """Remembers what a write made of `entries`, by which `writer` has `taken` some fields."""
        places = {key_of_entry(entry): index for index, entry in enumerate(entries)}
        kept: list[_After] = []
        for entry in after:
            key = key_of_entry(entry)
            place = places.get(key, _NONE)
            fields = bytes(entry.fields_v1 or b"")
            is_as_before = place >= 0 and bytes(entries[place].fields_v1 or b"") == fields
            if found.owner:
                template = msgspec.Raw(fields.replace(found.owner, _OWNER))
                entry = msgspec.structs.replace(entry, fields_v1=template)
            time_of = _NONE if taken and key == writer else places[key]
            kept.append(_After(entry, place if is_as_before else _NONE, time_of))
        weight = sum(len(part) for part in found.state if isinstance(part, str | bytes))
        weight += sum(512 + len(bytes(entry.fields_v1 or b"")) for entry in after)
        self._known.keep(found.state, tuple(kept), weight)


def _entry(after: _After, entries: Sequence[ManagedFieldsEntry], time: str, owner: bytes) -> ManagedFieldsEntry:
    entry, fields_of, time_of = after
    if fields_of >= 0:
        fields = entries[fields_of].fields_v1
    elif owner and entry.fields_v1 is not None:
        fields = msgspec.Raw(bytes(entry.fields_v1).replace(_OWNER, owner))
    else:
        fields = entry.fields_v1
    return msgspec.structs.replace(entry, time=time if time_of == _NONE else entries[time_of].time, fields_v1=fields)
