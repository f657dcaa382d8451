"""Words for a name that is not known: the names that there are, and the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 100
"""Characters of a name that is compared with others, which takes the square of its length."""


def did_you_mean(name: str, known: Iterable[str], mark: str = "") -> str:
    """Return `, did you mean X?` with the known name that is most like this one, or nothing if none is. `mark` stands
    before and behind the name, or before it if it is `--`."""
    from difflib import get_close_matches  # which no start needs

    if len(name) > _LONGEST:
        return ""
    by_small_letters = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), by_small_letters, 1)
    if not near:
        return ""
    return f", did you mean {mark}{by_small_letters[near[0]]}{'' if mark == '--' else mark}?"


def known_are(name: str, known: Iterable[str]) -> str:
    """Return what is put behind a message of upstream about a name: those that there are, and the one meant perhaps."""
    names = sorted(known)
    return f"; known are {', '.join(names)}{did_you_mean(name, names)}"


def none_of(value: object, allowed: Iterable[str]) -> str:
    """Return the message about a value that is none of those allowed."""
    names = list(allowed)
    return f"{value!r} is none of {', '.join(names)}{did_you_mean(str(value), names)}"
