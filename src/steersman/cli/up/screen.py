"""Lines at the bottom of a terminal that are redrawn in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TextIO


def can_redraw(out: TextIO) -> bool:
    """Return True if `out` is a terminal with cursor movement, and the user allows it (no-color.org)."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in ("", "dumb")


def size_of(out: TextIO) -> tuple[int, int]:
    """Return the terminal's current columns and rows; ignores the environment, which may be outdated."""
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        return 80, 24
    return (columns, rows) if columns and rows else (80, 24)


class Line(NamedTuple):
    """A line of ASCII, and the colour (RED, YELLOW, GREEN or none) of the text after its first `plain_columns`
    columns.
    """

    text: str
    colour: str = ""
    plain_columns: int = 0

    def drawn(self, width: int) -> str:
        """Return the line cut to `width` columns, with escape codes."""
        before, rest = self.text[: self.plain_columns], self.text[self.plain_columns : max(width, 0)]
        if not self.colour or not rest:
            return self.text[:width]
        return f"{before}\x1b[{self.colour}m{rest}\x1b[0m"


RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"


class Screen:
    """Redraws lines in place. Other output must be written by `above`.

    Lines are cut to the terminal's width at the time of drawing.
    """

    def __init__(self, out: TextIO, size: Callable[[TextIO], tuple[int, int]] = size_of) -> None:
        self._out = out
        self._size = size
        self._wanted: Sequence[Line] = ()
        self._drawn: list[Line] = []

    def show(self, lines: Sequence[str | Line]) -> None:
        """Draw these lines in place of the previous ones."""
        self._wanted = [Line(each) if isinstance(each, str) else each for each in lines]
        self._write("")

    def redraw(self) -> None:
        """Draw the same lines again, after the terminal's size has changed."""
        self._write("")

    def above(self, text: str) -> None:
        """Write permanent text above the lines."""
        self._write(text)

    def _write(self, text: str) -> None:
        columns, rows = self._size(self._out)
        width = max(columns - 1, 1)
        # A terminal that has become narrower has wrapped the longer lines.
        up = sum(-(-len(line.text) // columns) or 1 for line in self._drawn)
        parts = [f"\x1b[{min(up, rows)}F" if up else "", "\x1b[J", text]
        if text and not text.endswith("\n"):
            parts.append("\n")
        self._drawn = [line._replace(text=line.text[:width]) for line in self._wanted[: max(rows - 1, 0)]]
        parts += [f"{line.drawn(width)}\n" for line in self._drawn]
        self._out.write("".join(parts))
        self._out.flush()


class StreamAbove:
    """Text stream that writes above the lines of a screen; for logs."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._waiting = ""

    def write(self, text: str) -> int:
        """Write complete lines above the screen; the rest waits for its newline. Return the number of characters."""
        whole, newline, self._waiting = (self._waiting + text).rpartition("\n")
        if newline:
            self._screen.above(whole + newline)
        return len(text)

    def flush(self) -> None:
        """Do nothing: complete lines are written at once."""
