"""Objects in the watch cache in their served form, changes of them, and events for watchers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec


class Selectable(NamedTuple):
    """The parts of an object that selectors use. `fields` are computed when a selector first needs a field."""

    labels: Mapping[str, str]
    fields: Mapping[str, str] | None = None


class Entry(msgspec.Struct, gc=False, eq=False):
    """An object at a revision, ready to be served.

    `body` is the object in the most frequently served encoding, with its resourceVersion. `revision` is that of its
    last write. `selectable` has the parts that selectors use, computed at first use. `representations` are other
    encodings, limited by `Cacher.remember`. `facts` is a cache for facts that the server itself reads from the object
    repeatedly, by their producer. There may be a million entries, which the garbage collector does not traverse, so
    nothing stored here may refer back to an entry.
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
    """An event, shared by all watchers that get it.

    `type` is ADDED, MODIFIED or DELETED. The `entry` of a DELETED event is the last state that the watcher knew, with
    the revision of the event. `before` is the object before the change, None if there was none. `representations` has
    encodings of the event, so that each is made once for all watchers.
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
"""Bytes of a change without the object that it replaced."""


class Change(msgspec.Struct, gc=False, eq=False):
    """A write in the event window: the object before (None: there was none) and after (None: deleted).

    `time` is when the change was seen, in seconds of a monotonic clock. `size` are roughly the bytes that are freed
    with the change.
    """

    revision: int
    key: str
    previous: Entry | None
    current: Entry | None
    time: float
    size: int = 0
