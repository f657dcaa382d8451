"""What is wrong with an expression, and where: in the words and the form of the reference implementation, cel-go."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from steersman.cel.ast import NO_OFFSET, UNREAD_OFFSET

MAX_ERRORS: Final = 100
"""Errors that are told; of the rest there is only the count."""
_MAX_SNIPPET: Final = 16384
"""Bytes of a line up to which it is shown."""


_NEW_LINE: Final = re.compile("\n")


class CompileError(ValueError):
    """An expression is not valid; the text lists every error with its place."""


class Source:
    """The text of an expression, and where its lines start."""

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._starts: Final = [0, *(match.end() for match in _NEW_LINE.finditer(text))]

    def location(self, offset: int) -> tuple[int, int]:
        """The line, from 1, and the column, from 0, of an offset."""
        if offset == NO_OFFSET:
            return -1, -1
        if offset == UNREAD_OFFSET or not self.text:
            # As the reference implementation has it: the end of an empty text, too, is before the first column.
            return 1, -1
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def line(self, line: int) -> str | None:
        """The text of a line, if there is any text."""
        if not self.text or not 1 <= line <= len(self._starts):
            return None
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return self.text[self._starts[line - 1] : end]


class Errors:
    """Errors as they are found; printed in the order of their places."""

    def __init__(self, source: Source) -> None:
        self._source: Final = source
        self._found: Final[list[tuple[int, int, str]]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def report(self, offset: int, message: str) -> None:
        """Adds one, at a character of the text or at NO_OFFSET."""
        self._count += 1
        if self._count <= MAX_ERRORS:
            self._found.append((*self._source.location(offset), message))

    def text(self) -> str:
        """All of them, each followed by its line and a mark below it."""
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
