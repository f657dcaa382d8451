"""Messages between a worker and the owner of a storage, as bytes.

Numbers are little-endian. Parts that may be long are preceded by their length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

from steersman.net.link import frame
from steersman.storage.interface import (
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    KeyExists,
    KeyValue,
    OutcomeUnknown,
    StorageUnavailable,
)

NEWEST: Final = 0
COMPACTED: Final = 1
"""The shared words (machinery.shared_words) with the newest and the oldest revision."""
WORDS: Final = 2
"""The number of shared words."""
PIECE: Final = 1 << 20
"""The size in bytes after which events and items continue in another frame."""


class Kind(IntEnum):
    """The kind of a frame: a request, an answer with the number of its request, or a notification to all workers."""

    WRITE = 1
    GET = 2
    RANGE = 3
    REPLAY = 4
    COMPACT = 5
    OPEN = 6
    """The first frame of a worker, from which on it gets all events."""
    HELLO = 16
    EVENTS = 17
    """Frame number 0 for committed events, otherwise the number of the replay request."""
    REFUSAL = 18
    DONE = 19
    ITEMS = 20
    PAGE = 21
    FAILED = 22


_REVISION: Final = struct.Struct("<Q")
_WRITE: Final = struct.Struct("<QQI")
_GET: Final = struct.Struct("<Q")
_RANGE: Final = struct.Struct("<QQBII")
_REPLAY: Final = struct.Struct("<QQ")
_ITEM: Final = struct.Struct("<QQII")
_PAGE: Final = struct.Struct("<QBq")
_EVENT: Final = struct.Struct("<BQIQIQQI")
_FAILED: Final = struct.Struct("<BQQ")
_CURRENT, _PREVIOUS = 1, 2


def _text(data: bytes) -> str:
    return data.decode(errors="surrogatepass")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


# Requests


def write(number: int, key: str, value: bytes, expected_revision: int, ttl: int) -> bytes:
    """Return the request of a create (`expected_revision` 0), an update, or a delete (no value)."""
    name = _bytes(key)
    return frame(Kind.WRITE, number, _WRITE.pack(expected_revision, ttl, len(name)), name, value)


def read_write(body: bytes) -> tuple[str, bytes, int, int]:
    """Return the key, the value, the expected revision and the TTL in seconds."""
    expected, ttl, size = _WRITE.unpack_from(body)
    at = _WRITE.size + size
    return _text(body[_WRITE.size : at]), body[at:], expected, ttl


def get(number: int, key: str, revision: int) -> bytes:
    """Return the request for the value of a key."""
    return frame(Kind.GET, number, _GET.pack(revision), _bytes(key))


def read_get(body: bytes) -> tuple[str, int]:
    """Return the key and the revision."""
    return _text(body[_GET.size :]), _GET.unpack_from(body)[0]


def range_of(number: int, prefix: str, start: str, limit: int, revision: int, *, count: bool) -> bytes:
    """Return the request for the keys under a prefix."""
    low, first = _bytes(prefix), _bytes(start)
    return frame(Kind.RANGE, number, _RANGE.pack(revision, limit, count, len(low), len(first)), low, first)


def read_range(body: bytes) -> tuple[str, str, int, int, bool]:
    """Return the prefix, start, limit, revision and whether to count."""
    revision, limit, count, size, _ = _RANGE.unpack_from(body)
    at = _RANGE.size + size
    return _text(body[_RANGE.size : at]), _text(body[at:]), limit, revision, bool(count)


def replay(number: int, prefix: str, after_revision: int, last: int) -> bytes:
    """Return the request for the kept events under a prefix, after one revision and up to another."""
    return frame(Kind.REPLAY, number, _REPLAY.pack(after_revision, last), _bytes(prefix))


def read_replay(body: bytes) -> tuple[str, int, int]:
    """Return the prefix, the revision before the first, and the last."""
    after, last = _REPLAY.unpack_from(body)
    return _text(body[_REPLAY.size :]), after, last


def compact(number: int, revision: int) -> bytes:
    """Return the request to remove the history before a revision."""
    return frame(Kind.COMPACT, number, _REVISION.pack(revision))


# Answers


def revision_frame(kind: Kind, number: int, revision: int) -> bytes:
    """Return a frame (HELLO, DONE) with a revision."""
    return frame(kind, number, _REVISION.pack(revision))


def read_revision(body: bytes) -> int:
    """Return the revision of a HELLO, DONE or COMPACT."""
    revision: int = _REVISION.unpack_from(body)[0]
    return revision


def _item(item: KeyValue) -> bytes:
    name = _bytes(item.key)
    head = _ITEM.pack(item.create_revision, item.mod_revision, len(name), len(item.value))
    return b"".join((head, name, item.value))


def items(number: int, found: Sequence[KeyValue]) -> Iterator[bytes]:
    """Yield frames of the items of an answer, each of about one piece."""
    parts: list[bytes] = []
    size = 0
    for each in found:
        parts.append(data := _item(each))
        size += len(data)
        if size >= PIECE:
            yield frame(Kind.ITEMS, number, *parts)
            parts, size = [], 0
    if parts:
        yield frame(Kind.ITEMS, number, *parts)


def read_items(body: bytes) -> list[KeyValue]:
    """Decode the items of one frame."""
    found = []
    at = 0
    while at < len(body):
        created, modified, name, size = _ITEM.unpack_from(body, at)
        start = at + _ITEM.size + name
        found.append(KeyValue(_text(body[at + _ITEM.size : start]), body[start : start + size], created, modified))
        at = start + size
    return found


def page(number: int, revision: int, count: int, *, more: bool) -> bytes:
    """Return the end of an answer to a range or a get."""
    return frame(Kind.PAGE, number, _PAGE.pack(revision, more, count))


def read_page(body: bytes) -> tuple[int, bool, int]:
    """Return the revision, True if more items follow, and the count of all items."""
    revision, more, count = _PAGE.unpack_from(body)
    return revision, bool(more), count


def events(number: int, committed: Sequence[Event]) -> Iterator[bytes]:
    """Yield frames of events, each of about one piece."""
    parts: list[bytes] = []
    size = 0
    for each in committed:
        current, previous, name = each.current, each.previous, _bytes(each.key)
        new = b"" if current is None else current.value
        old = b"" if previous is None else previous.value
        parts.append(
            _EVENT.pack(
                (0 if current is None else _CURRENT) | (0 if previous is None else _PREVIOUS),
                each.revision,
                len(name),
                0 if current is None else current.create_revision,
                len(new),
                0 if previous is None else previous.create_revision,
                0 if previous is None else previous.mod_revision,
                len(old),
            )
        )
        parts += (name, new, old)
        size += len(new) + len(old) + 64
        if size >= PIECE:
            yield frame(Kind.EVENTS, number, *parts)
            parts, size = [], 0
    if parts:
        yield frame(Kind.EVENTS, number, *parts)


def read_events(body: bytes) -> list[Event]:
    """Decode the events of one frame."""
    found = []
    at = 0
    while at < len(body):
        flags, revision, name, created, new, old_created, old_modified, old = _EVENT.unpack_from(body, at)
        start = at + _EVENT.size
        middle = start + name
        after = middle + new
        at = after + old
        key = _text(body[start:middle])
        current = KeyValue(key, body[middle:after], created, revision) if flags & _CURRENT else None
        previous = KeyValue(key, body[after:at], old_created, old_modified) if flags & _PREVIOUS else None
        found.append(Event(revision, key, current, previous))
    return found


# Errors


class _Code(IntEnum):
    EXISTS = 1
    CONFLICT = 2
    GONE = 3
    """A conflict on a key that does not exist."""
    COMPACTED = 4
    FUTURE = 5
    UNAVAILABLE = 6
    UNKNOWN = 7


def failed(number: int, error: Exception) -> bytes:
    """Return the answer with the error of a request. Errors outside the contract get a general text."""
    match error:
        case KeyExists():
            return frame(Kind.FAILED, number, _FAILED.pack(_Code.EXISTS, 0, 0), _item(error.current))
        case Conflict() if error.current is not None:
            return frame(Kind.FAILED, number, _FAILED.pack(_Code.CONFLICT, 0, 0), _item(error.current))
        case Conflict():
            return frame(Kind.FAILED, number, _FAILED.pack(_Code.GONE, 0, 0), _bytes(str(error)))
        case Compacted():
            return frame(Kind.FAILED, number, _FAILED.pack(_Code.COMPACTED, error.revision, 0))
        case FutureRevision():
            return frame(Kind.FAILED, number, _FAILED.pack(_Code.FUTURE, error.requested, error.current))
        case OutcomeUnknown():
            return frame(Kind.FAILED, number, _FAILED.pack(_Code.UNKNOWN, 0, 0), _bytes(str(error)))
        case StorageUnavailable():
            return frame(Kind.FAILED, number, _FAILED.pack(_Code.UNAVAILABLE, 0, 0), _bytes(str(error)))
        case _:
            return frame(Kind.FAILED, number, _FAILED.pack(_Code.UNKNOWN, 0, 0), b"the storage has failed")


def is_unforeseen(error: Exception) -> bool:
    """Return True for an error outside the contract."""
    return not isinstance(error, KeyExists | Conflict | Compacted | FutureRevision | StorageUnavailable)


def read_failed(body: bytes) -> Exception:
    """Decode the error."""
    code, first, second = _FAILED.unpack_from(body)
    rest = body[_FAILED.size :]
    match code:
        case _Code.EXISTS:
            return KeyExists(read_items(rest)[0])
        case _Code.CONFLICT:
            current = read_items(rest)[0]
            return Conflict(current.key, current)
        case _Code.GONE:
            return Conflict(_text(rest), None)
        case _Code.COMPACTED:
            return Compacted(first)
        case _Code.FUTURE:
            return FutureRevision(first, second)
        case _Code.UNAVAILABLE:
            return StorageUnavailable(_text(rest))
        case _:
            return OutcomeUnknown(_text(rest))
