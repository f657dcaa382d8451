"""Transports and field caches for tests of connections without sockets."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.net.fields import FieldCache


class Wire(asyncio.Transport):
    """A transport that records written data."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


class Undated(FieldCache):
    """A field cache without dates, so that two runs can be compared."""

    def date(self) -> bytes:
        return b""
