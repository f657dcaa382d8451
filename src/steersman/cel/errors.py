"""Errors of an expression with their positions, in the words and format of the reference implementation, cel-go."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from steersman.cel.ast import NO_OFFSET, UNREAD_OFFSET
from steersman.work.patterns import late_pattern

MAX_ERRORS: Final = 100
"""The most errors that are listed; the others are only counted."""
_MAX_SNIPPET: Final = 16384
"""The most bytes of a line that is shown."""


_NEW_LINE: Final = late_pattern("\n")


class CompileError(ValueError):
    """An expression is invalid. The text lists every error with its position."""


class Source:
    """The text of an expression with the offsets of its lines."""

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._starts: Final = [0, *(match.end() for match in _NEW_LINE.finditer(text))]

    def location(self, offset: int) -> tuple[int, int]:
        """Return the line of an offset, from 1, and its column, from 0."""
        if offset == NO_OFFSET:
            return -1, -1
        if offset == UNREAD_OFFSET or not self.text:
            # As in the reference implementation, the end of an empty text is before the first column.
            return 1, -1
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def line(self, line: int) -> str | None:
        """Return the text of a line, if there is any text."""
        if not self.text or not 1 <= line <= len(self._starts):
            return None
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return self.text[self._starts[line - 1] : end]


class Errors:
    """The errors that were found, which are printed in the order of their positions."""

    def __init__(self, source: Source) -> None:
        self._source: Final = source
        self._found: Final[list[tuple[int, int, str]]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def report(self, offset: int, message: str) -> None:
        """Add an error at the offset of a character or at NO_OFFSET."""
        self._count += 1
        if self._count <= MAX_ERRORS:
            self._found.append((*self._source.location(offset), message))

    def text(self) -> str:
        """Return the text of all errors, each followed by its line and a mark below it."""
        shown = [self._display(*each) for each in sorted(self._found, key=lambda each: each[:2])]
        if self._count > MAX_ERRORS:
            shown.append(f"{self._count - MAX_ERRORS} more errors were truncated")
        return "\n".join(shown)

    def _display(self, line: int, column: int, message: str) -> str:
        result = f"ERROR: <input>:{line}:{column + 1}: {message}"
        snippet = self._source.line(line)
        if snippet is None or len(snippet.encode()) > _MAX_SNIPPET:
            return result
        snippet = snippet.replace("\t", " ")
        column = max(column, 0)
        before = "".join("." if character.isascii() else "\uff0e" for character in snippet[:column])
        mark = "^" if snippet[column : column + 1].isascii() else "\uff3e"
        return f"{result}\n | {snippet}\n | {before}{mark}"
