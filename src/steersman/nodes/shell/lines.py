"""Input of programs that process lines: some lines at a time, from files or standard input."""

from __future__ import annotations

from collections import deque
from typing import Final

from steersman.nodes.shell.effects import MOST_BUFFERED, PIECE, Read, Work, World, Write
from steersman.nodes.shell.paths import absolute

_LINES: Final = 512
"""Lines that a program gets at once."""
_MOST_LINE: Final = 2 * PIECE
"""Bytes of a line; a longer line is delivered in parts."""
_DEVICES: Final = frozenset({"/dev/null", "/dev/stdin", "/dev/tty"})


class Input:
    """Content of several files, or of standard input if there are none.

    `code` is the exit code so far: 1 once a file could not be read, which is reported on standard error.
    """

    def __init__(self, world: World, name: str, paths: list[str]) -> None:
        self.code = 0
        self.world = world
        self._name = name
        self._paths: deque[str] = deque(paths or ["-"])
        self._data: bytes | None = None
        """Content of the current file."""
        self._at = 0
        self._from_stdin = False
        self._rest: list[bytes] = []
        """Parts of an incomplete line."""
        self._size = 0
        """Bytes of the incomplete line."""
        self._over = False
        self._lines: list[bytes] = []
        """Lines of the last block."""
        self._at_line = 0
        self._ends = False
        """True if the last of these lines has no newline."""
        self.path = ""
        """Path of the file that the last piece came from."""

    def piece(self) -> Work[bytes]:
        """Return the next bytes, PIECE at most; b"" at the end."""
        while True:
            if self._data is not None:
                part = self._data[self._at : self._at + PIECE]
                self._at += len(part)
                if part:
                    yield from self.world.spend(len(part))
                    return part
                self._data = None
            elif self._from_stdin:
                read = yield Read()
                if isinstance(read, bytes):
                    yield from self.world.spend(len(read))
                    return read
                self._from_stdin = False
            elif not self._paths:
                return b""
            else:
                yield from self.world.spend(lines=8)
                yield from self._open(self._paths.popleft())

    def _open(self, path: str) -> Work[None]:
        self.path = path
        place = absolute(self.world, path)
        if path == "-" or place == "/dev/stdin":
            self._from_stdin = True
            return
        data = b"" if place in _DEVICES else self.world.read(place)
        if data is not None:
            self._data, self._at = data, 0
            return
        self.code = 1
        yield from self.world.spend(files=self.world.many_files)
        is_folder = self.world.is_folder(place)
        why = (
            f"'{path}': read error: Is a directory" if is_folder else f"can't open '{path}': No such file or directory"
        )
        yield Write(2, f"{self._name}: {why}\n".encode(errors="surrogateescape"))

    def block(self) -> Work[bytes]:
        """Return the next whole lines; b"" at the end. A line longer than 64 KiB is delivered in parts."""
        while not self._over:
            piece = yield from self.piece()
            self._over = not piece
            end = piece.rfind(b"\n") + 1
            if end:
                self._rest.append(piece[:end])
            self._size += len(piece)
            if end or self._over or self._size > _MOST_LINE:
                block = b"".join(self._rest) if end else b"".join((*self._rest, piece))
                self._rest = [piece[end:]] if end else []
                self._size = len(piece) - end if end else 0
                if block:
                    return block
            else:
                self._rest.append(piece)
        return b""

    def lines(self) -> Work[list[bytes]]:
        """Return the next lines with their newlines; [] at the end."""
        if self._at_line >= len(self._lines):
            block = yield from self.block()
            self._lines, self._at_line = block.split(b"\n"), 0
            last = self._lines.pop()
            self._ends = bool(last)
            if last:
                self._lines.append(last)
        lines = [each + b"\n" for each in self._lines[self._at_line : self._at_line + _LINES]]
        self._at_line += len(lines)
        if lines and self._ends and self._at_line >= len(self._lines):
            lines[-1] = self._lines[-1]
        yield from self.world.spend(lines=len(lines))
        return lines

    def all(self) -> Work[bytes]:
        """Return everything that is left; if it is more than MOST_BUFFERED bytes, only the last ones."""
        taken = bytearray()
        while piece := (yield from self.piece()):
            taken += piece
            if len(taken) > 2 * MOST_BUFFERED:
                del taken[:-MOST_BUFFERED]
        return bytes(taken[-MOST_BUFFERED:])
