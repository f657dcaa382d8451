"""Text of users and servers for a terminal: control characters are escaped, and colours are used on terminals only."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from functools import cache
from typing import Final

from steersman.machinery.go.escaping import escaped
from steersman.machinery.go.strings import split_space

_LONGEST: Final = 1_000
"""Most characters of one text."""
_WIDEST: Final = 120


def printable(text: object, longest: int = _LONGEST) -> str:
    """Return text of one line, cut to `longest` characters, without characters that could control a terminal.

    Such a character is shown as its escape, also characters that change the direction of text.
    """
    shown = str(text)
    cut = " ".join(split_space(shown[:longest]))
    return escaped(cut, _special(), _escape) + ("..." if len(shown) > longest else "")


@cache
def _special() -> re.Pattern[str]:
    from steersman.machinery.go.printable import unprintable

    return unprintable()


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii") if character != " " else " "


def coloured(text: str, colour: str) -> str:
    """Return text in a colour (a number of ISO 6429), as it is unless the output is a terminal that shows colours."""
    shows = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return f"\x1b[{colour}m{text}\x1b[0m" if shows and colour else text


def wrapped(text: str, first: str, further: str) -> list[str]:
    """Return text in lines of the terminal's width; `first` and `further` begin the first and the other lines."""
    width = min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)
    return textwrap.wrap(
        text,
        max(width, len(first) + 20),
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
