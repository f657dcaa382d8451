"""A cache of the effect of updates on managedFields: most updates repeat what earlier ones did.

Often only times change, for example if a controller writes the same status fields again and again, or a client sends an
object with other values. Objects that only differ in the uid of their owner share cache entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.work.bounded_cache import BoundedCache
from steersman.work.patterns import late_pattern

from .comparison import Comparison
from .field_set import FieldSet
from .managers import MAX_UPDATE_MANAGERS, ManagerKey, in_order_of_entries, key_of_entry
from .result_cache import result_cache


class UpdateInputs(Struct, frozen=True):
    """The inputs that determine the entries after a write."""

    state: tuple[object, ...]
    """The entries before the write, the writer, and the changed and removed fields, with a placeholder for the owner's
    uid.
    """
    owner: bytes
    """The uid of the object's owner, b"" if it has none. It is not part of the cache key."""


class _CachedEntry(NamedTuple):
    """A cached entry after the write."""

    entry: ManagedFieldsEntry
    """The entry. Its fields have the placeholder `_OWNER` in the place of the owner's uid."""
    fields_of: int
    """The index of an entry before the write with the same fields, -1 if there is none."""
    time_of: int
    """The index of an entry before the write with the same time; -1 for the time of the write."""


_NONE: Final = -1
_OWNER: Final = b"(owner)"
_PARENTHESIS: Final = ord("(")
"""A byte is found much faster than a text."""
_UID: Final = late_pattern(rb'k:\{\\"uid\\":\\"([^"\\]+)\\"\}')
_encode: Final = msgspec.json.Encoder().encode


def update_inputs(
    entries: Sequence[ManagedFieldsEntry], key: ManagerKey, comparison: Comparison
) -> UpdateInputs | None:
    """Return the inputs that determine the entries after a write by `key`, or None if the result cannot be cached.

    It cannot be cached if there are more entries than updates may have, or if the result depends on the object in
    another version.
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
        return UpdateInputs((*parts, *(each.replace(owner, _OWNER) for each in fields)), owner)
    return UpdateInputs((*parts, *fields), b"")


def _owner_in(fields: Sequence[bytes]) -> bytes:
    """Return the uid that is a list key in these FieldsV1, b"" if there is not exactly one.

    Also returns b"" if the uid occurs anywhere else in them.
    """
    owners: set[bytes] = set()
    count = 0
    for each in fields:
        if each.find(b'\\"uid') >= 0:
            uids = _UID.findall(each)
            count += len(uids)
            owners.update(uids)
        if _PARENTHESIS in each and each.find(_OWNER) >= 0:
            return b""
    if len(owners) != 1:
        return b""
    (owner,) = owners
    return owner if sum(each.count(owner) for each in fields) == count else b""


class UpdateCache:
    """A cache of the entries after a write, by the entries before the write, for the updates of one version."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: BoundedCache[tuple[object, ...], tuple[_CachedEntry, ...]] = result_cache()

    def entries_after(
        self, found: UpdateInputs | None, entries: Sequence[ManagedFieldsEntry], time: str
    ) -> list[ManagedFieldsEntry] | None:
        """Return the entries after a write at `time`; None if the cache does not have them."""
        known = None if found is None else self._known[found.state]
        if known is None or found is None:
            return None
        return in_order_of_entries([_entry(each, entries, time, found.owner) for each in known])

    def store(
        self,
        found: UpdateInputs,
        entries: Sequence[ManagedFieldsEntry],
        after: Sequence[ManagedFieldsEntry],
        writer: ManagerKey,
        taken: FieldSet,
    ) -> None:
        """Cache the result of a write to `entries` by which `writer` has `taken` some fields."""
        places = {key_of_entry(entry): index for index, entry in enumerate(entries)}
        kept: list[_CachedEntry] = []
        for entry in after:
            key = key_of_entry(entry)
            place = places.get(key, _NONE)
            fields = bytes(entry.fields_v1 or b"")
            is_as_before = place >= 0 and bytes(entries[place].fields_v1 or b"") == fields
            if found.owner:
                template = msgspec.Raw(fields.replace(found.owner, _OWNER))
                entry = msgspec.structs.replace(entry, fields_v1=template)
            time_of = _NONE if taken and key == writer else places[key]
            kept.append(_CachedEntry(entry, place if is_as_before else _NONE, time_of))
        weight = sum(len(part) for part in found.state if isinstance(part, str | bytes))
        weight += sum(512 + len(bytes(entry.fields_v1 or b"")) for entry in after)
        self._known.keep(found.state, tuple(kept), weight)


def _entry(after: _CachedEntry, entries: Sequence[ManagedFieldsEntry], time: str, owner: bytes) -> ManagedFieldsEntry:
    entry, fields_of, time_of = after
    if fields_of >= 0:
        fields = entries[fields_of].fields_v1
    elif owner and entry.fields_v1 is not None:
        fields = msgspec.Raw(bytes(entry.fields_v1).replace(_OWNER, owner))
    else:
        fields = entry.fields_v1
    return msgspec.structs.replace(entry, time=time if time_of == _NONE else entries[time_of].time, fields_v1=fields)
