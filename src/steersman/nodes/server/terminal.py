"""Terminal between a typing client and a command: it echoes keys and delivers input line by line."""

from __future__ import annotations

from collections import deque
from typing import Final

_INTERRUPT: Final = 3
_END: Final = 4
_ERASE: Final = frozenset({8, 127})
_RETURN: Final = frozenset({10, 13})
_ESCAPE: Final = 27
_MOST_TYPED: Final = 4096
"""Bytes of a line; further keys are ignored."""
_MOST_AHEAD: Final = 4096
"""Bytes of lines that are not read yet; further keys are lost, as when a real terminal's queue is full."""


class Interrupted(Exception):
    """Ctrl-C was typed."""


class Terminal:
    """Terminal with the line that is being typed.

    `type_keys` adds finished lines to `lines`; b"" there means end of input.
    """

    def __init__(self) -> None:
        self.lines: deque[bytes] = deque()
        self.interrupted = False
        self._line = bytearray()
        self._escape = 0
        self._ahead = 0

    def count_read(self, line: bytes) -> None:
        """Count a line as read."""
        self._ahead -= len(line)

    def _enter(self, line: bytes) -> None:
        self.lines.append(line)
        self._ahead += len(line)

    def type_keys(self, data: bytes) -> bytes:
        """Process typed bytes and return the bytes to echo."""
        shown = bytearray()
        for key in data:
            if self._escape:  # escape sequences, as of cursor keys, are ignored
                self._escape = 0 if (self._escape > 1 and 64 <= key < 127) or self._escape > 8 else self._escape + 1
            elif key == _ESCAPE:
                self._escape = 1
            elif key in _RETURN:
                if self._ahead >= _MOST_AHEAD:
                    continue
                self._enter(bytes(self._line) + b"\n")
                self._line.clear()
                shown += b"\r\n"
            elif key in _ERASE:
                if self._line:
                    self._line.pop()
                    shown += b"\b \b"
            elif key == _INTERRUPT:
                self._line.clear()
                self.interrupted = True
                shown += b"^C\r\n"
            elif key == _END:
                if not self._line and self._ahead < _MOST_AHEAD and (not self.lines or self.lines[-1]):
                    self._enter(b"")
            elif (key >= 32 or key == 9) and len(self._line) < _MOST_TYPED and self._ahead < _MOST_AHEAD:
                self._line.append(key)
                shown.append(key)
        return bytes(shown)


def with_crlf(data: bytes) -> bytes:
    """Return output with the line ends that a terminal needs."""
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
