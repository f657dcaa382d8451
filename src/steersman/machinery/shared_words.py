"""Numbers in memory shared by several processes, read and written without locks or messages."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Final

_SIZE: Final = 4096


class SharedWords:
    """Numbers of 64 bits, all 0 at first. Each number has one process that writes it.

    The numbers are aligned, so one machine instruction reads or writes a number and no reader sees a half-written one.
    """

    def __init__(self, descriptor: int) -> None:
        """Take over the descriptor of the shared memory. Raises OSError."""
        self.descriptor: Final = descriptor
        self._memory = mmap.mmap(descriptor, _SIZE)
        self._words = memoryview(self._memory).cast("Q")  # native format: one word is one memory access

    @classmethod
    def create(cls) -> SharedWords:
        """Create new shared memory, whose descriptor may be passed to other processes. Raises OSError."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("steersman-words")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, _SIZE)
        return cls(descriptor)

    def __getitem__(self, index: int) -> int:
        return self._words[index]

    def __setitem__(self, index: int, value: int) -> None:
        self._words[index] = value

    def close(self) -> None:
        """Release the memory and close its descriptor."""
        self._words.release()
        self._memory.close()
        os.close(self.descriptor)
