"""What an update makes of the entries of an object, remembered: most updates do what others did before them.

A controller that writes the same status fields again and again, or a client that sends an object back with other
values, changes times only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from steersman.api.meta.v1 import ManagedFieldsEntry

from .comparison import Comparison
from .field_set import FieldSet
from .managers import MAX_UPDATE_MANAGERS, ManagerKey, in_order_of_entries, key_of_entry
from .remembered import Remembered

Before = tuple[object, ...]
"""The entries there were, who writes, and what is changed and removed."""
After = tuple[tuple[ManagedFieldsEntry, int], ...]
"""The entries there are then. Each has the time of the one with that index before; -1 is the time of the write."""

_NOW: Final = -1
_encode: Final = msgspec.json.Encoder().encode


def before(entries: Sequence[ManagedFieldsEntry], key: ManagerKey, comparison: Comparison) -> Before | None:
    """What the entries after a write by `key` depend on; None where they depend on more than that.

    That are the times of more entries than updates may have, and what an object is in another version.
    """
    if not 0 < len(entries) < MAX_UPDATE_MANAGERS:
        return None
    parts: list[object] = [key, _encode(comparison.changed), _encode(comparison.removed)]
    for entry in entries:
        if entry.api_version != key.api_version or entry.fields_v1 is None:
            return None
        parts += (entry.manager, entry.operation, entry.subresource, entry.fields_type, bytes(entry.fields_v1))
    return tuple(parts)


class Changes:
    """The entries after a write, by those before it. For the updates of one version."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: Remembered[Before, After] = Remembered()

    def after(
        self, found: Before | None, entries: Sequence[ManagedFieldsEntry], time: str
    ) -> list[ManagedFieldsEntry] | None:
        """The entries after a write at `time`; None if that is not known."""
        known = self._known.get(found)
        if known is None:
            return None
        return in_order_of_entries(
            [
                msgspec.structs.replace(each, time=time if index == _NOW else entries[index].time)
                for each, index in known
            ]
        )

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
        kept: list[tuple[ManagedFieldsEntry, int]] = []
        for entry in after:
            key = key_of_entry(entry)
            kept.append((entry, _NOW if taken and key == writer else places[key]))
        weight = sum(len(part) for part in found if isinstance(part, str | bytes))
        weight += sum(512 + len(bytes(entry.fields_v1 or b"")) for entry in after)
        self._known.keep(found, tuple(kept), weight)
