"""A recording as a replay needs it: its beginning, the changes after it, and how pods ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steersman.cluster.replaying.plan import Ends, ends_of
from steersman.dumps.errors import DumpError
from steersman.dumps.reading import MOST_BYTES, Dump, DumpObject
from steersman.dumps.recordings import Change, key_of, read_changes
from steersman.machinery.codec.serializer import encode_in_order

_BEGINNING: Final = 60.0
"""Seconds in which a recording lists what there is."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording: `start` and `end` are in seconds since 1970, `beginning` has the objects that were there."""

    path: Path
    start: float
    end: float
    beginning: Dump
    ends: dict[str, Ends]

    def changes(self) -> Iterator[Change]:
        """Yield all changes, those of the beginning as PRESENT. Raises DumpError."""
        seen: set[tuple[str, str, str, str]] = set()
        for each in read_changes(self.path):
            key = key_of(each.object)
            if each.type == "PRESENT" and not self._is_beginning(each, seen):
                each = each._replace(type="MODIFIED" if key in seen else "ADDED")
            seen.add(key)
            yield each

    def _is_beginning(self, change: Change, seen: set[tuple[str, str, str, str]]) -> bool:
        return change.time - self.start <= _BEGINNING and key_of(change.object) not in seen


def load_recorded(path: Path) -> Recorded:
    """Read a recording once. Raises DumpError."""
    start: float | None = None
    end = 0.0
    beginning: dict[tuple[str, str, str, str], DumpObject] = {}
    size = 0

    def all_changes() -> Iterator[Change]:
        nonlocal start, end, size
        for each in read_changes(path):
            start = each.time if start is None else start
            end = max(end, each.time)
            key = key_of(each.object)
            if each.type == "PRESENT" and each.time - start <= _BEGINNING:
                _, kind, namespace, name = key
                data = encode_in_order(each.object)
                size += len(data)
                if size > MOST_BYTES:
                    raise DumpError(f"{path}: more than {MOST_BYTES >> 20} MiB of objects at the beginning")
                beginning.setdefault(key, DumpObject(each.object["apiVersion"], kind, namespace, name, data))
            yield each

    ends = ends_of(all_changes())
    if start is None:
        raise DumpError(f"{path}: no change in it")
    return Recorded(path, start, end, Dump(list(beginning.values())), ends)
