"""Variables of a container and references to them in its command, as long as a process may have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

MOST_ARGUMENT: Final = 128 << 10
"""Bytes of one argument or variable of a process in Linux (MAX_ARG_STRLEN)."""
MOST_ARGUMENTS: Final = 2 << 20
"""Bytes of all of them together (ARG_MAX, with the usual stack)."""
_POINTER: Final = 8
_REFERENCE: Final = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)", re.ASCII)


class ArgumentsTooLong(Exception):
    """No process can be started with these arguments and variables (E2BIG)."""


class Room:
    """What a process may be given as arguments and variables."""

    def __init__(self) -> None:
        self._left = MOST_ARGUMENTS

    def take(self, text: str) -> None:
        """Raises ArgumentsTooLong where there is no room for one more text."""
        size = len(text) if text.isascii() else len(text.encode(errors="replace"))
        self._left -= size + 1 + _POINTER
        if size >= MOST_ARGUMENT or self._left < 0:
            raise ArgumentsTooLong


class Variables(dict[str, str]):
    """Variables by name, which are put one after the other; each may refer to those before it."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__()
        self._room = Room()
        for name, value in given.items():
            self.put(name, value)

    def put(self, name: str, value: str) -> None:
        """Raises ArgumentsTooLong. A variable of the same name that was there before keeps its room."""
        self._room.take(f"{name}={value}")
        self[name] = value


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with variables in the place of `$(NAME)`, and `$` in that of `$$`; unknown names stay.

    Raises ArgumentsTooLong before a text is made that no process can be given: variables that name variables grow
    exponentially.
    """
    parts: list[str] = []
    left = MOST_ARGUMENT
    for part in _parts(text, variables):
        left -= len(part)
        if left <= 0:
            raise ArgumentsTooLong
        parts.append(part)
    return "".join(parts)


def _parts(text: str, variables: Mapping[str, str]) -> Iterator[str]:
    end = 0
    for found in _REFERENCE.finditer(text):
        yield text[end : found.start()]
        yield "$" if found[1] is None else variables.get(found[1], found[0])
        end = found.end()
    yield text[end:]
