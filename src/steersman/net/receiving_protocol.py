"""Reception of bytes by way of one buffer for all connections of a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

_READ_BYTES: Final = 256 << 10

_of_thread: Final = threading.local()


class ReceivingProtocol(asyncio.BufferedProtocol):
    """A protocol that receives bytes by way of one buffer shared by all connections of a thread.

    With a plain Protocol, TLS would allocate and shrink 256 KB for every read, a new memory mapping each time. The
    event loop calls `get_buffer` and `buffer_updated` without a switch between them, and `buffer_updated` copies the
    bytes first, so that one buffer is enough.
    """

    __slots__ = ("_read_buffer",)

    def __init__(self) -> None:
        self._read_buffer = _read_buffer()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that the event loop reads into."""
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on the bytes that the event loop has read."""
        self.data_received(self._read_buffer[:nbytes].tobytes())

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        raise NotImplementedError


def _read_buffer() -> memoryview:
    """Return the buffer of this thread."""
    try:
        buffer: memoryview = _of_thread.buffer
    except AttributeError:
        buffer = _of_thread.buffer = memoryview(bytearray(_READ_BYTES))
    return buffer
