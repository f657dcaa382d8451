"""Messages of etcd's API that are used here, as bytes (etcd `api/etcdserverpb/rpc.proto`, `api/mvccpb/kv.proto`).

Keys are bytes here. Requests omit fields with default values. Only the needed fields of answers are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from steersman.net.protobuf_fields import varint
from steersman.work.patterns import late_pattern

RANGE: Final = "/etcdserverpb.KV/Range"
TXN: Final = "/etcdserverpb.KV/Txn"
COMPACT: Final = "/etcdserverpb.KV/Compact"
WATCH: Final = "/etcdserverpb.Watch/Watch"
LEASE_GRANT: Final = "/etcdserverpb.Lease/LeaseGrant"
LEASE_KEEP_ALIVE: Final = "/etcdserverpb.Lease/LeaseKeepAlive"
LEASE_REVOKE: Final = "/etcdserverpb.Lease/LeaseRevoke"
LEASE_TIME_TO_LIVE: Final = "/etcdserverpb.Lease/LeaseTimeToLive"
DELETE_RANGE: Final = "/etcdserverpb.KV/DeleteRange"
PUT: Final = "/etcdserverpb.KV/Put"
STATUS: Final = "/etcdserverpb.Maintenance/Status"

NO_END: Final = b"\0"
"""The end of a range without an upper bound."""
_TARGET_VERSION, _TARGET_MOD = 0, 2
_DELETED: Final = 1
_ITEM: Final = 2
"""The number of the field of a RangeResponse with the items."""
_LARGEST: Final = (1 << 63) - 1


class MessageError(ValueError):
    """The data is not a valid message of the expected type."""


@dataclass(slots=True)
class Stored:
    """mvccpb.KeyValue. `lease` is 0 for a key that does not expire."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int = 0


@dataclass(slots=True)
class RangeAnswer:
    """The result of a range request. `revision` is the newest revision, `count` the number of all keys, whatever the
    limit.
    """

    revision: int
    items: list[Stored]
    more: bool
    count: int


@dataclass(slots=True)
class TxnAnswer:
    """The result of a transaction. `found` is the item that its range request has found."""

    revision: int
    succeeded: bool
    found: Stored | None


@dataclass(slots=True)
class Change:
    """mvccpb.Event. For a deletion, `current` only has a key and a `mod_revision`."""

    deleted: bool
    current: Stored
    previous: Stored | None


@dataclass(slots=True)
class WatchAnswer:
    """etcdserverpb.WatchResponse."""

    revision: int = 0
    created: bool = False
    canceled: bool = False
    compact_revision: int = 0
    reason: str = ""
    fragment: bool = False
    changes: list[Change] = field(default_factory=list)


# Requests


def _number(tag: int, value: int) -> bytes:
    return varint(tag << 3) + varint(value) if value else b""


def _bytes(tag: int, value: bytes) -> bytes:
    """Return a field with a number below 16."""
    size = len(value)
    if size < 0x80:
        return bytes((tag << 3 | 2, size)) + value
    if size < 0x4000:
        return bytes((tag << 3 | 2, size & 0x7F | 0x80, size >> 7)) + value
    return bytes((tag << 3 | 2,)) + varint(size) + value


def range_of(
    key: bytes,
    end: bytes = b"",
    *,
    limit: int = 0,
    revision: int = 0,
    serializable: bool = False,
    keys_only: bool = False,
    count_only: bool = False,
) -> bytes:
    """Return a RangeRequest for one key, or for those from `key` to `end`. A `serializable` request is answered by one
    member on its own, possibly with outdated data; `keys_only` omits the values.
    """
    ends = _bytes(2, end) if end else b""
    limits = _number(3, limit) + _number(4, revision)
    return _bytes(1, key) + ends + limits + _number(7, serializable) + _number(8, keys_only) + _number(9, count_only)


def put_if(key: bytes, value: bytes, *, mod_revision: int, lease: int = 0) -> bytes:
    """Return a TxnRequest that stores a value if the key's mod_revision is the given one (0: the key does not exist),
    and otherwise reads the key.
    """
    put = _bytes(1, key) + _bytes(2, value) + _number(3, lease)
    return _if(key, _TARGET_MOD, 6, mod_revision, _bytes(2, put))


def delete_if(key: bytes, *, mod_revision: int) -> bytes:
    """Return a TxnRequest that deletes a key if its mod_revision is the given one, and otherwise reads it."""
    return _if(key, _TARGET_MOD, 6, mod_revision, _bytes(3, _bytes(1, key)))


def put_if_version(key: bytes, value: bytes, *, version: int) -> bytes:
    """Return a TxnRequest that stores a value if the key has the given version, and otherwise reads it."""
    return _if(key, _TARGET_VERSION, 4, version, _bytes(2, _bytes(1, key) + _bytes(2, value)))


def _if(key: bytes, target: int, field_of_target: int, value: int, operation: bytes) -> bytes:
    compare = _number(2, target) + _bytes(3, key) + _number(field_of_target, value)
    return _bytes(1, compare) + _bytes(2, operation) + _bytes(3, _bytes(1, _bytes(1, key)))


def compaction(revision: int) -> bytes:
    """Return a CompactionRequest."""
    return _number(1, revision)


def lease_grant(seconds: int) -> bytes:
    """Return a LeaseGrantRequest."""
    return _number(1, seconds)


def lease_request(lease: int) -> bytes:
    """Return a LeaseTimeToLiveRequest, LeaseKeepAliveRequest or LeaseRevokeRequest."""
    return _number(1, lease)


def put(key: bytes, value: bytes, lease: int = 0) -> bytes:
    """Return a PutRequest."""
    return _bytes(1, key) + _bytes(2, value) + _number(3, lease)


def delete_range(key: bytes, end: bytes = b"") -> bytes:
    """Return a DeleteRangeRequest for one key, or for those from `key` to `end`."""
    return _bytes(1, key) + (_bytes(2, end) if end else b"")


def read_revision(data: bytes) -> int:
    """Return the revision in the header of any answer. Raises MessageError."""
    try:
        return next((_revision(data, at, end) for number, at, end in _fields(data, 0, len(data)) if number == 1), 0)
    except IndexError:
        raise MessageError("a message is cut off") from None


def watch(key: bytes, end: bytes, start_revision: int) -> bytes:
    """Return a WatchRequest for all changes from a revision on, with the previous values, in fragments if they are
    large.
    """
    return _bytes(1, _bytes(1, key) + _bytes(2, end) + _number(3, start_revision) + b"\x20\x01\x30\x01\x40\x01")


PROGRESS: Final = _bytes(3, b"")
"""A WatchRequest for the revision up to which all events have been sent."""


# Answers


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        if byte < 0x80:
            return value | byte << shift, at
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 63:
            raise MessageError("a number of more than 64 bits")


def _fields(data: bytes, at: int, end: int) -> list[tuple[int, int, int]]:
    """Return the fields of a message: (number, value, 0), or (number, start, end) for bytes."""
    fields: list[tuple[int, int, int]] = []
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1)
        kind = tag & 7
        if kind not in (0, 2):
            raise MessageError(f"a field of wire type {kind}")
        value = data[at]  # most numbers have one or two bytes
        at += 1
        if value >= 0x80:
            high = data[at]
            if high < 0x80:
                value += high - 1 << 7
                at += 1
            else:
                value, at = _varint(data, at - 1)
        if kind == 0:
            fields.append((tag >> 3, value, 0))
            continue
        if value > end - at:
            raise MessageError("a field is longer than its message")
        fields.append((tag >> 3, at, at + value))
        at += value
    return fields


def _stored(data: bytes, at: int, end: int) -> Stored:
    key = value = b""
    created = modified = version = lease = 0
    for number, first, last in _fields(data, at, end):
        if number == 1:
            key = data[first:last]
        elif number == 2:
            created = first
        elif number == 3:
            modified = first
        elif number == 4:
            version = first
        elif number == 5:
            value = data[first:last]
        elif number == 6:
            lease = first
    return Stored(key, value, created, modified, version, lease)


_NUMBER: Final = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_HEADER: Final = late_pattern(rb"(?:\x08%b)?(?:\x10%b)?\x18(?=%b)" % (_NUMBER, _NUMBER, _NUMBER))
"""The start of a ResponseHeader: cluster and member IDs, which are large numbers and not needed, then the revision."""


def read_key_value(data: bytes) -> Stored:
    """Return a KeyValue. Raises MessageError."""
    return _stored(data, 0, len(data))


def _revision(data: bytes, at: int, end: int) -> int:
    """Return the revision of a ResponseHeader."""
    if not end:
        raise MessageError("a number where a header belongs")
    head = _HEADER.match(data, at, end)
    if head is not None:
        found = _varint(data, head.end())[0]
    else:
        found = next((value for number, value, _ in _fields(data, at, end) if number == 3), 0)
    if found > _LARGEST:
        raise MessageError("an invalid revision")
    return found


def read_range(data: bytes) -> RangeAnswer:
    """Decode a RangeResponse. Raises MessageError."""
    try:
        return _range(data, 0, len(data))
    except IndexError:
        raise MessageError("a message is cut off") from None


def _range(data: bytes, at: int, end: int) -> RangeAnswer:
    range_answer = RangeAnswer(0, [], False, 0)
    items = range_answer.items
    for number, first, last in _fields(data, at, end):
        if number == _ITEM:
            items.append(_stored(data, first, last))
        else:
            _read_field(range_answer, data, number, first, last)
    return range_answer


def read_items(data: bytes, answer: RangeAnswer) -> Iterator[Stored]:
    """Yield the items of a large RangeResponse one at a time, and put the rest into `answer`. Raises MessageError."""
    try:
        for number, first, last in _one_by_one(data):
            if number == _ITEM:
                yield _stored(data, first, last)
            else:
                _read_field(answer, data, number, first, last)
    except IndexError:
        raise MessageError("a message is cut off") from None


def _one_by_one(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the fields of a message like `_fields`, one at a time."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, value, 0
        elif kind != 2:
            raise MessageError(f"a field of wire type {kind}")
        elif value > end - at:
            raise MessageError("a field is longer than its message")
        else:
            yield tag >> 3, at, at + value
            at += value


def _read_field(answer: RangeAnswer, data: bytes, number: int, first: int, last: int) -> None:
    """Record a field of a RangeResponse other than an item."""
    if number == 1:
        answer.revision = _revision(data, first, last)
    elif number == 3:
        answer.more = bool(first)
    elif number == 4:
        answer.count = first


def read_txn(data: bytes) -> TxnAnswer:
    """Decode a TxnResponse. Raises MessageError."""
    answer = TxnAnswer(0, False, None)
    try:
        for number, first, last in _fields(data, 0, len(data)):
            if number == 1:
                answer.revision = _revision(data, first, last)
            elif number == 2:
                answer.succeeded = bool(first)
            elif number == 3:
                for operation, begin, end in _fields(data, first, last):
                    if operation == 1 and (items := _range(data, begin, end).items):
                        answer.found = items[0]
    except IndexError:
        raise MessageError("a message is cut off") from None
    return answer


def read_watch(data: bytes) -> WatchAnswer:
    """Decode a WatchResponse. Raises MessageError."""
    answer = WatchAnswer()
    try:
        for number, first, last in _fields(data, 0, len(data)):
            if number == 11:
                answer.changes.append(_change(data, first, last))
            elif number == 1:
                answer.revision = _revision(data, first, last)
            elif number == 3:
                answer.created = bool(first)
            elif number == 4:
                answer.canceled = bool(first)
            elif number == 5:
                answer.compact_revision = first
            elif number == 6:
                answer.reason = data[first:last].decode(errors="replace")
            elif number == 7:
                answer.fragment = bool(first)
    except IndexError:
        raise MessageError("a message is cut off") from None
    return answer


def _change(data: bytes, at: int, end: int) -> Change:
    deleted = False
    current = previous = None
    for number, first, last in _fields(data, at, end):
        if number == 1:
            deleted = first == _DELETED
        elif number == 2:
            current = _stored(data, first, last)
        elif number == 3:
            previous = _stored(data, first, last)
    if current is None:
        raise MessageError("an event without a key")
    return Change(deleted, current, previous)


def read_cluster(data: bytes) -> int:
    """Return the cluster ID in the header of any answer except a watch's, 0 if there is none. Raises MessageError."""
    try:
        for number, first, last in _fields(data, 0, len(data)):
            if number == 1 and last:
                return next((value for tag, value, end in _fields(data, first, last) if tag == 1 and not end), 0)
    except IndexError:
        raise MessageError("a message is cut off") from None
    return 0


def read_lease(data: bytes) -> int:
    """Return the ID of a LeaseGrantResponse. Raises MessageError."""
    return _only(data, 2)


def read_seconds(data: bytes) -> int:
    """Return the TTL of a LeaseKeepAliveResponse, 0 for an expired lease. Raises MessageError."""
    try:
        return next((value for number, value, last in _fields(data, 0, len(data)) if number == 3 and not last), 0)
    except IndexError:
        raise MessageError("a message is cut off") from None


@dataclass(slots=True)
class Status:
    """etcdserverpb.StatusResponse: the cluster ID of a member, its version, the size of its file in bytes, the revision
    that it has applied, and the ID of the leader (0: unknown).
    """

    cluster: int = 0
    version: str = ""
    size: int = 0
    revision: int = 0
    leader: int = 0


def read_status(data: bytes) -> Status:
    """Decode a StatusResponse. Raises MessageError."""
    status = Status()
    try:
        for number, first, last in _fields(data, 0, len(data)):
            if number == 1:
                status.cluster = next((value for field, value, _ in _fields(data, first, last) if field == 1), 0)
                status.revision = _revision(data, first, last)
            elif number == 2:
                status.version = data[first:last].decode(errors="replace")
            elif number == 3:
                status.size = first
            elif number == 4:
                status.leader = first
    except IndexError:
        raise MessageError("a message is cut off") from None
    return status


def read_seconds_left(data: bytes) -> int:
    """Return the remaining seconds of a LeaseTimeToLiveResponse, a negative number if the lease no longer exists.
    Raises MessageError.
    """
    try:
        value = next((value for number, value, _ in _fields(data, 0, len(data)) if number == 3), 0)
    except IndexError:
        raise MessageError("a message is cut off") from None
    return value - (1 << 64) if value >> 63 else value


def _only(data: bytes, wanted: int) -> int:
    try:
        for number, value, last in _fields(data, 0, len(data)):
            if number == wanted and not last:
                return value
    except IndexError:
        raise MessageError("a message is cut off") from None
    raise MessageError(f"no field {wanted}")
