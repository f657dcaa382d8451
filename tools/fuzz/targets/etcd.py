"""Answers of etcd's members: the messages, and their transport over gRPC."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from steersman.net import protobuf_fields as proto
from steersman.net.client import grpc
from steersman.net.http2.frames import ErrorCode, StreamFault
from steersman.storage.etcd import messages
from tools.fuzz.target import Target, same


def answer(data: bytes) -> int:
    """Every reader of answers; a reader of all fields finds the same revision in the header, where it reads it too."""
    found = 0
    error: messages.MessageError | None = None
    for read in (
        messages.read_range,
        messages.read_txn,
        messages.read_watch,
        messages.read_lease,
        messages.read_status,
        messages.read_cluster,
    ):
        try:
            read(data)
            found += 1
        except messages.MessageError as failure:
            error = failure
    if not found and error is not None:
        raise error
    return found


def written(data: bytes) -> bytes:
    """Requests of any bytes are messages of the fields that were given."""
    fields = proto.decode(messages.range_of(data, data + b"\0", limit=len(data), count_only=True))
    same(fields[1], [data] if data else [b""], "the key")
    same(fields[2], [data + b"\0"], "the end")
    same(fields.get(3, [0]), [len(data)], "the limit")
    compare = proto.decode(messages.put_if(data, data, mod_revision=7))
    same(len(compare), 3, "parts of a transaction")
    return data


class _Connection:
    """Connection with the attributes and methods that a stream uses."""

    has_capacity, next_id, peer_window = True, 1, 1 << 20

    def table_update(self) -> bytes:
        return b""

    def begin(self, *_: object) -> None:
        return

    def consumed(self, *_: object) -> None:
        return


def stream(data: bytes) -> int:
    """Messages that come in pieces are those that come at once."""
    return len(asyncio.run(_streamed(data)))


async def _streamed(data: bytes) -> list[bytes]:
    whole, wrong = _taken([data])
    middle = len(data) // 2
    pieces, also_wrong = _taken([data[:3], data[3:middle], data[max(3, middle) :]])
    same(wrong, also_wrong, "whether a stream breaks the rules")
    same(whole, pieces, "messages in pieces")
    if wrong:
        raise StreamFault(1, ErrorCode.NO_ERROR, "wrong")
    return whole


def _taken(pieces: list[bytes]) -> tuple[list[bytes], bool]:
    found: list[bytes] = []
    connection: Any = _Connection()
    taking = grpc.Stream(connection, b"", found.append, lambda error: None)
    try:
        for each in pieces:
            taking.on_bytes(each)
    except StreamFault:
        return found, True
    return found, False


_HEADER: Final = b"\x0a\x04\x08\x01\x18\x07"
_ITEM: Final = b"\x12\x0d\x0a\x02/a\x10\x02\x18\x03\x20\x01\x2a\x01v"
_EVENT: Final = b"\x5a\x0f\x08\x01\x12\x0b\x0a\x02/a\x10\x02\x18\x03\x2a\x01v"
_WORDS: Final = (
    _HEADER,
    _ITEM,
    _EVENT,
    b"\x10\x01",
    b"\x1a\x08\x0a\x06" + _HEADER,
    b"\x18\x01",
    b"\x20\x01",
    b"\x28\x05",
    b"\x32\x03why",
    b"\x38\x01",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x0b\x0c",
    b"\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
)

TARGETS: Final = (
    Target("etcd-answer", answer, (messages.MessageError,), _WORDS),
    Target("etcd-request", written, (), _WORDS),
    Target("grpc-stream", stream, (StreamFault,), (b"\0\0\0\0\0", b"\0\0\0\0\x03abc", b"\x01", b"\xff\xff\xff\xff")),
)
