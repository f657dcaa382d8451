"""Numbers in memory that several processes share: each is read and written at once, without asking anybody."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Final

_SIZE: Final = 4096
MOST_WORDS: Final = _SIZE // 8


class SharedWords:
    """`MOST_WORDS` numbers of 64 bits, all 0 at first. Of each one process is the writer.

    They are aligned, and read and written by one machine instruction, so that nobody sees half of one.
    """

    def __init__(self, descriptor: int) -> None:
        """Takes over the descriptor of the memory. Raises OSError."""
        self.descriptor: Final = descriptor
        self._memory = mmap.mmap(descriptor, _SIZE)
        self._words = memoryview(self._memory).cast("Q")  # native, of which a word is one piece

    @classmethod
    def made(cls) -> SharedWords:
        """New ones, whose descriptor other processes may be given. Raises OSError."""
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
        """Lets go of the memory."""
        self._words.release()
        self._memory.close()
        os.close(self.descriptor)
