"""Patterns of the shell, grep and sed, executed by RE2, whose time is linear in the text for every pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from steersman.net.ascii import is_digits
from steersman.nodes.shell.effects import OutOfMemory, Work, World

if TYPE_CHECKING:
    import re2

_MOST: Final = 1024
"""Characters of a pattern."""
_MEMORY: Final = 1 << 20
"""Bytes that RE2 may use for one pattern."""
_WILD: Final = frozenset("*?[")
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")
_WORD_ESCAPES: Final = {"<": r"\b", ">": r"\b", "n": r"\n", "t": r"\t", "r": r"\r"}
_KEPT_ESCAPES: Final = frozenset("wWsSbB")
_BASIC: Final = frozenset("(){}|+?")
"""Characters that are literal in basic regular expressions, and special after a backslash."""


MOST_SEARCHED: Final = 6 << 16
"""Work of one search, in characters: about 30 ms if RE2 has to track each state of a pattern."""
_FEW_STATES: Final = 32
"""Program size of a pattern that is assumed to need only a few nanoseconds a character."""


class PatternError(ValueError):
    """The pattern is invalid, too long, or needs more than regular expressions can do."""


# Patterns of the shell


def glob(pattern: str, text: str) -> bool:
    """Return True if the whole text matches a pattern. An unusable pattern matches itself. Raises OutOfMemory."""
    if len(pattern) > _MOST:
        return pattern == text
    if not _WILD & set(pattern):
        return _unescaped(pattern) == text
    if glob_work(pattern, len(text)) > MOST_SEARCHED:
        raise OutOfMemory
    try:
        return _of_whole(pattern).search(_clean(text)) is not None
    except PatternError:
        return pattern == text


def glob_work(pattern: str, length: int) -> int:
    """Return the work of matching a text of `length` characters, in characters; 0 if it is little."""
    return len(pattern) * length >> 4 if len(pattern) > _FEW_STATES >> 2 and len(pattern) <= _MOST else 0


@lru_cache(256)
def _of_whole(pattern: str) -> re2._Regexp:
    """Compile a pattern for a whole text. Raises PatternError."""
    return _compiled(f"(?s)^(?:{_of_glob(pattern, '')})$")


def shorter(pattern: str, text: str, operator: str) -> str:
    """Return a text without the prefix (`#`, `##` for the longest) or suffix (`%`, `%%`) that matches.

    Raises OutOfMemory.
    """
    if len(pattern) > _MOST:
        return text
    if glob_work(pattern, len(text)) > MOST_SEARCHED:
        raise OutOfMemory
    text = _clean(text)
    try:
        if operator[0] == "#":
            lazy = "" if operator == "##" else "?"
            match = _compiled(f"(?s)^(?:{_of_glob(pattern, lazy)})").search(text)
            return text if match is None else text[match.end() :]
        # The suffix is found as a prefix of the reversed text, as groups would take RE2 much longer.
        lazy = "" if operator == "%%" else "?"
        match = _compiled(f"(?s)^(?:{_of_glob(pattern, lazy, is_reversed=True)})").search(text[::-1])
        return text if match is None else text[: len(text) - match.end()]
    except PatternError:
        return text


def _of_glob(pattern: str, lazy: str, *, is_reversed: bool = False) -> str:
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        here = pattern[at]
        at += 1
        if here == "*":
            pieces.append(f".*{lazy}")
        elif here == "?":
            pieces.append(".")
        elif here == "[" and (end := _class_end(pattern, at)):
            pieces.append(_class(pattern[at:end], "!^"))
            at = end + 1
        elif here == "\\" and at < len(pattern):
            pieces.append(_literal(pattern[at]))
            at += 1
        else:
            pieces.append(_literal(here))
    return "".join(reversed(pieces) if is_reversed else pieces)


def _unescaped(pattern: str) -> str:
    pieces = pattern.split("\\\\")
    return "\\".join(each.replace("\\", "") for each in pieces)


def _clean(text: str) -> str:
    return text if text.isascii() else text.encode(errors="replace").decode()


# Patterns of grep and sed


def regular(*patterns: str, extended: bool, ignores_case: bool = False, whole: str = "") -> re2._Regexp:
    """Compile a regular expression over bytes that finds any of the patterns. Raises PatternError.

    `whole` is `x` to match whole lines, `w` to match whole words.
    """
    if sum(map(len, patterns)) > _MOST:
        raise PatternError("pattern too long")
    pattern = "|".join(_of_regular(each, extended=extended) for each in patterns)
    if whole:
        pattern = f"^(?:{pattern})$" if whole == "x" else rf"\b(?:{pattern})\b"
    return _compiled(f"(?im){pattern}" if ignores_case else f"(?m){pattern}", as_bytes=True)


def search_work(pattern: re2._Regexp, length: int) -> int:
    """Return the work of a search in a text of `length` bytes, in characters; 0 if it is little."""
    return pattern.programsize * length >> 4 if pattern.programsize > _FEW_STATES else 0


def searching(world: World, pattern: re2._Regexp, length: int) -> Work[None]:
    """Count the work of the search that follows. Raises OutOfMemory if it is too much to be done at once."""
    work = search_work(pattern, length)
    if work > MOST_SEARCHED:
        raise OutOfMemory
    if work:
        yield from world.spend(work)


def literal(text: str) -> str:
    """Return the basic regular expression that matches a text literally."""
    return "".join(f"\\{each}" if each in "\\.*[]^$" else each for each in text)


def _of_regular(pattern: str, *, extended: bool) -> str:
    pieces: list[str] = []
    at, begins = 0, True
    while at < len(pattern):
        here = pattern[at]
        at += 1
        if here == "[" and (end := _class_end(pattern, at)):
            pieces.append(_class(pattern[at:end], "^"))
            at = end + 1
        elif here == "\\" and at < len(pattern):
            pieces.append(_escaped(pattern[at], extended=extended))
            begins = not extended and pattern[at] in "(|"
            at += 1
            continue
        elif (here == "*" and begins) or (not extended and here in _BASIC) or here == "[":
            pieces.append(f"\\{here}")
        else:
            pieces.append(here)
        begins = here == "^" or (extended and here in "(|")
    return "".join(pieces)


def _escaped(here: str, *, extended: bool) -> str:
    """Translate an escaped character to RE2's syntax. Raises PatternError for a reference to a group."""
    if is_digits(here):
        raise PatternError("references to groups are not known here")
    if here in _WORD_ESCAPES:
        return _WORD_ESCAPES[here]
    if here in _KEPT_ESCAPES:
        return f"\\{here}"
    return here if not extended and here in _BASIC else _literal(here)


def _class_end(pattern: str, start: int) -> int:
    """Return the position of the bracket that closes a character class begun at `start`; 0 if there is none."""
    at = start
    if pattern[at : at + 1] in ("!", "^"):
        at += 1
    at += pattern[at : at + 1] == "]"
    while (end := pattern.find("]", at)) >= 0:
        named = pattern.find("[:", at, end)
        behind = pattern.find(":]", named + 2) if named >= 0 else -1
        if behind < 0:
            return end
        at = behind + 2
    return 0


def _class(inside: str, negations: str) -> str:
    negated = inside[:1] in negations and bool(inside)
    inside = inside[1:] if negated else inside
    escaped = "".join(
        f"\\{each}" if each in "\\]^" or (each == "[" and inside[at + 1 : at + 2] != ":") else each
        for at, each in enumerate(inside)
    ).replace(":\\]", ":]")
    return f"[{'^' if negated else ''}{escaped}]"


def _literal(character: str) -> str:
    return f"\\{character}" if character in _SPECIAL else character


def _compiled(pattern: str, *, as_bytes: bool = False) -> re2._Regexp:
    """Compile an expression of RE2. Raises PatternError."""
    if len(pattern) > 2 * _MOST:
        raise PatternError("pattern too long")
    return _kept(pattern, as_bytes=as_bytes)


@lru_cache(256)
def _kept(pattern: str, *, as_bytes: bool) -> re2._Regexp:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        if as_bytes:
            options.encoding = re2.Options.Encoding.LATIN1
            return re2.compile(pattern.encode("latin-1", errors="replace"), options)
        return re2.compile(_clean(pattern), options)
    except (re2.error, UnicodeError) as error:
        why = error.args[0] if error.args else ""
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise PatternError(text.replace("(?m)", "")) from None
