"""Messages between owner and workers, apart from the storage protocol."""

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
"""Index of the shared word that is 1 once all workers have been ready."""
_FIRST: Final = 8
MOST_PROCESSES: Final = 160
"""Limit of processes: while workers are replaced there are twice as many."""
MOST_WORKERS: Final = MOST_PROCESSES // 2


def open_word(slot: int) -> int:
    """Return the index of the shared word with the number of connections of the process in a slot."""
    return _FIRST + 3 * slot


def passed_word(slot: int) -> int:
    """Return the index of the shared word with the number of connections that the process had been passed by then."""
    return _FIRST + 3 * slot + 1


def beat_word(slot: int) -> int:
    """Return the index of the shared heartbeat word, which grows as long as the process's event loop runs."""
    return _FIRST + 3 * slot + 2


class Kind(IntEnum):
    """Kind of a frame between owner and worker. SETTINGS is the owner's first frame, before all others."""

    SETTINGS = 1
    READY = 2
    FAILED = 3
    """The worker could not start; the body is one line with the reason."""
    END = 4
    REPLACED = 5
    """The worker ends, as with END, and has been replaced already."""
    GATHER = 6
    GATHERED = 7
    SCRAPE = 8
    SCRAPED = 9


@dataclass(slots=True)
class WorkerSettings:
    """The first message to a worker. `flags` are those of the whole server, `options` those of the worker."""

    options: Options
    flags: dict[str, str]
    number: int
    """Number of the worker from 0; worker 0 also does the work that only one process of a server may do."""
    slot: int
    port: int


def share(options: Options, number: int, port: int) -> Options:
    """Return the options of a worker: its share of limits; only worker 0 keeps the options for work done once."""
    count = options.workers
    own = replace(
        options,
        secure_port=port,
        max_requests_inflight=-(-options.max_requests_inflight // count),
        max_mutating_requests_inflight=-(-options.max_mutating_requests_inflight // count),
    )
    return own if number == 0 else replace(own, endpoint_reconciler_type="none", controllers=())


def encode(value: WorkerSettings | Address) -> bytes:
    """Return a value as the bytes of a frame."""
    return msgspec.msgpack.encode(value, enc_hook=str)


def _decoded(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError


def decode_settings(body: bytes) -> WorkerSettings:
    """Return the value that `encode` encoded."""
    return msgspec.msgpack.decode(body, type=WorkerSettings, dec_hook=_decoded)


def decode_ready(body: bytes) -> Address:
    """Return the value that `encode` encoded."""
    return msgspec.msgpack.decode(body, type=Address, dec_hook=_decoded)


_SIZE: Final = struct.Struct("<I")


def joined(texts: Sequence[bytes]) -> bytes:
    """Return several texts in one frame."""
    return b"".join(part for text in texts for part in (_SIZE.pack(len(text)), text))


def parted(body: bytes) -> Iterator[bytes]:
    """Yield the texts that `joined` has joined."""
    at = 0
    while at < len(body):
        (size,) = _SIZE.unpack_from(body, at)
        at += _SIZE.size
        yield body[at : at + size]
        at += size


def first_frame(sock: socket.socket) -> bytes:
    """Return the bytes of the first frame; blocks. Raises EOFError and OSError."""
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
