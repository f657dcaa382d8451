"""Variables of a container and references to them in its command, bounded as for a process in Linux."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from steersman.work.patterns import late_pattern

MOST_ARGUMENT: Final = 128 << 10
"""Bytes of one argument or variable of a process in Linux (MAX_ARG_STRLEN)."""
MOST_ARGUMENTS: Final = 2 << 20
"""Bytes of all arguments and variables together (ARG_MAX, with the usual stack)."""
_POINTER: Final = 8
_REFERENCE: Final = late_pattern(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)", re.ASCII)


class ArgumentsTooLong(Exception):
    """No process can be started with these arguments and variables (E2BIG)."""


class ArgumentBudget:
    """Budget of bytes for the arguments or variables of a process."""

    def __init__(self) -> None:
        self._left = MOST_ARGUMENTS

    def use(self, text: str) -> None:
        """Use the bytes of one more argument or variable. Raises ArgumentsTooLong if they exceed the budget."""
        size = len(text) if text.isascii() else len(text.encode(errors="replace"))
        self._left -= size + 1 + _POINTER
        if size >= MOST_ARGUMENT or self._left < 0:
            raise ArgumentsTooLong


class Variables(dict[str, str]):
    """Variables by name, added one after the other; each may refer to earlier ones."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__()
        self._budget = ArgumentBudget()
        for name, value in given.items():
            self.put(name, value)

    def put(self, name: str, value: str) -> None:
        """Add a variable. A replaced variable still counts against the budget. Raises ArgumentsTooLong."""
        self._budget.use(f"{name}={value}")
        self[name] = value


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with `$(NAME)` replaced by the variable's value and `$$` by `$`; unknown names stay.

    Raises ArgumentsTooLong before a text grows beyond what a process can get, as variables that refer to variables grow
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
