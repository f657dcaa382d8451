"""What owner and workers say to each other beside what is stored."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from steersman.controlplane.addresses import Address
from steersman.controlplane.options import Options
from steersman.storage.shared import frames

ALL_WERE_READY: Final = frames.WORDS
"""The shared word that says whether all workers were ready once."""
_FIRST: Final = 8
MOST_PROCESSES: Final = 160
"""While workers are replaced there are twice as many."""
MOST_WORKERS: Final = MOST_PROCESSES // 2


def open_word(slot: int) -> int:
    """The shared word in which the process in a slot says how many connections it has..."""
    return _FIRST + 3 * slot


def taken_word(slot: int) -> int:
    """...and how many it had been handed then."""
    return _FIRST + 3 * slot + 1


def beat_word(slot: int) -> int:
    """The shared word that grows as long as its loop runs."""
    return _FIRST + 3 * slot + 2


class Kind(IntEnum):
    """What a frame between owner and worker is about; the first is the owner's, and comes before all others."""

    GIVEN = 1
    READY = 2
    FAILED = 3
    """Why the worker could not start, in one line."""
    END = 4
    REPLACED = 5
    """END for a worker in whose place another one is already."""
    GATHER = 6
    GATHERED = 7
    SCRAPE = 8
    SCRAPED = 9


@dataclass(slots=True)
class Given:
    """What a worker is told first. `flags` are those of the whole server, `options` those of the worker."""

    options: Options
    flags: dict[str, str]
    number: int
    """From 0; the worker of number 0 also does what one of a server does."""
    slot: int
    port: int


def share(options: Options, number: int, port: int) -> Options:
    """The options of a worker: its part of what bounds the whole, and only of the first what is done once."""
    count = options.workers
    own = replace(
        options,
        secure_port=port,
        max_requests_inflight=-(-options.max_requests_inflight // count),
        max_mutating_requests_inflight=-(-options.max_mutating_requests_inflight // count),
    )
    return own if number == 0 else replace(own, endpoint_reconciler_type="none", controllers=())


def encode(value: Given | Address) -> bytes:
    """As the bytes of a frame."""
    return msgspec.msgpack.encode(value, enc_hook=str)


def _decoded(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError


def decode_given(body: bytes) -> Given:
    """What `encode` was given."""
    return msgspec.msgpack.decode(body, type=Given, dec_hook=_decoded)


def decode_ready(body: bytes) -> Address:
    """What `encode` was given."""
    return msgspec.msgpack.decode(body, type=Address, dec_hook=_decoded)


_SIZE: Final = struct.Struct("<I")


def joined(texts: Sequence[bytes]) -> bytes:
    """Several texts in one frame."""
    return b"".join(part for text in texts for part in (_SIZE.pack(len(text)), text))


def parted(body: bytes) -> Iterator[bytes]:
    """The texts again."""
    at = 0
    while at < len(body):
        (size,) = _SIZE.unpack_from(body, at)
        at += _SIZE.size
        yield body[at : at + size]
        at += size


def first_frame(sock: socket.socket) -> bytes:
    """The bytes of the first frame, which is waited for. Raises EOFError, OSError."""
    size, _, _ = struct.unpack("<IBI", _exactly(sock, 9))
    return _exactly(sock, size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
