"""What the watch cache holds and hands out: objects as served, changes of them, and events for watchers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec


class Selectable(NamedTuple):
    """What selectors look at in an object. `fields` are made when one asks for a field."""

    labels: Mapping[str, str]
    fields: Mapping[str, str] | None = None


class Entry(msgspec.Struct, gc=False, eq=False):
    """An object at a revision, ready to be served.

    `body` is the object in the representation that is served most, with its resourceVersion; `revision` is that of
    its last write. `selectable` is what selectors look at, made when first needed.
    `representations` are other encodings, kept within a bound by `Cacher.remember`; `facts` is what the server itself
    reads out of the object again and again, by whatever made it. There may be a million entries, which collections of
    garbage do not walk: nothing that is kept here leads back to one.
    """

    key: str
    body: bytes
    revision: int
    selectable: Selectable | None = None
    representations: dict[object, bytes] | None = None
    facts: dict[object, object] | None = None

    def __repr__(self) -> str:
        return f"Entry({self.key!r}, revision={self.revision})"


class WatchEvent:
    """One event as all watchers that get it share it.

    `type` is ADDED, MODIFIED or DELETED. The `entry` of a DELETED event is the last state the watcher knew, presented
    at the revision of the event; `before` is the object as it was before the change, None if there was none.
    `representations` is for its encodings, so that each is made once for all watchers.
    """

    __slots__ = ("before", "entry", "representations", "revision", "type")

    def __init__(self, type: str, entry: Entry, revision: int, before: Entry | None = None) -> None:
        self.type = type
        self.entry = entry
        self.revision = revision
        self.before = before
        self.representations: dict[Any, Any] | None = None

    def __repr__(self) -> str:
        return f"WatchEvent({self.type}, {self.entry.key!r}, {self.revision})"


CHANGE_BYTES: Final = 300
"""Bytes of a change without the object that it has replaced."""


class Change(msgspec.Struct, gc=False, eq=False):
    """One write as the event window keeps it: the object before (None: there was none) and after (None: deleted).

    `time` is when the change was seen, in seconds of a monotonic clock, and `size` the bytes that live as long as it and
    no longer, roughly.
    """

    revision: int
    key: str
    previous: Entry | None
    current: Entry | None
    time: float
    size: int = 0
