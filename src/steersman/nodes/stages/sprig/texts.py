"""Functions of strings (sprig `strings.go`). Lengths that Go counts in bytes are counted in bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import split_space, to_lower, to_upper, trim_space
from steersman.nodes.stages.go_template.builtins import Function, integer, text
from steersman.nodes.stages.go_template.evaluation import MOST_TEXT
from steersman.nodes.stages.go_template.values import TemplateError, Value, text_of
from steersman.work.patterns import late_pattern

_OF_WORDS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def _bounded(length: int, whose: str) -> None:
    if length > MOST_TEXT:
        raise TemplateError(f"{whose}: a text of more than {MOST_TEXT} characters")


def strings_of(value: Value) -> list[str]:
    """Return the texts of a list's elements without nil; for any other value, a list of its text."""
    if value is None:
        return []
    return [text_of(each) for each in value if each is not None] if isinstance(value, list) else [text_of(value)]


def _cut(value: str, begin: int, end: int | None) -> str:
    return value.encode()[begin:end].decode(errors="replace")


def _trunc(size: Value, value: Value) -> str:
    count, given = integer(size, "trunc"), text(value, "trunc")
    length = len(given.encode())
    if count < 0:
        return _cut(given, length + count, None) if length + count > 0 else given
    return _cut(given, 0, count)


def _substr(start: Value, end: Value, value: Value) -> str:
    first, last, given = integer(start, "substr"), integer(end, "substr"), text(value, "substr")
    length = len(given.encode())
    if first < 0:
        return _cut(given, 0, max(last, 0))
    if last < 0 or last > length:
        return _cut(given, first, None)
    if first > last:
        raise TemplateError(f"slice bounds out of range [{first}:{last}]")
    return _cut(given, first, last)


def _repeat(count: Value, value: Value) -> str:
    times, given = integer(count, "repeat"), text(value, "repeat")
    if times < 0:
        raise TemplateError("strings: negative Repeat count")
    _bounded(times * len(given), "repeat")
    return given * times


def _replace(old: Value, new: Value, value: Value) -> str:
    before, after, given = text(old, "replace"), text(new, "replace"), text(value, "replace")
    _bounded(len(given) + (given.count(before) if before else len(given) + 1) * len(after), "replace")
    return given.replace(before, after)


def _indent(spaces: Value, value: Value) -> str:
    count, given = integer(spaces, "indent"), text(value, "indent")
    if count < 0:
        raise TemplateError("strings: negative Repeat count")
    _bounded(len(given) + count * (1 + given.count("\n")), "indent")
    pad = " " * count
    return pad + given.replace("\n", f"\n{pad}")


def _nindent(spaces: Value, value: Value) -> str:
    return "\n" + _indent(spaces, value)


def _quote(*values: Value) -> str:
    return " ".join(quote(text_of(each)) for each in values if each is not None)


def _single_quote(*values: Value) -> str:
    return " ".join(f"'{text_of(each)}'" for each in values if each is not None)


def _cat(*values: Value) -> str:
    return " ".join(text_of(each) for each in values if each is not None)


def _title(value: Value) -> str:
    given = text(value, "title")
    return "".join(
        to_upper(char) if not number or _separates(given[number - 1]) else char for number, char in enumerate(given)
    )


def _separates(char: str) -> bool:
    """Return True if a word may begin after a character (strings.Title)."""
    return char not in _OF_WORDS if char.isascii() else not split_space(char)


def _plural(one: Value, many: Value, count: Value) -> str:
    return text(one if integer(count, "plural") == 1 else many, "plural")


def _split(separator: Value, value: Value) -> dict[str, Value]:
    return {f"_{number}": each for number, each in enumerate(_split_list(separator, value))}


def _splitn(separator: Value, most: Value, value: Value) -> dict[str, Value]:
    count = integer(most, "splitn")
    given, separator_text = text(value, "splitn"), text(separator, "splitn")
    parts = (
        _split_list(separator_text, given)
        if count < 0 or not separator_text
        else given.split(separator_text, max(count - 1, 0))
    )
    return {f"_{number}": each for number, each in enumerate(parts if count else [])}


def _split_list(separator: Value, value: Value) -> list[Value]:
    separator_text, given = text(separator, "splitList"), text(value, "splitList")
    return list(given.split(separator_text)) if separator_text else list(given)


def _join(separator: Value, value: Value) -> str:
    return text(separator, "join").join(strings_of(value))


def _sorted(value: Value) -> list[Value]:
    return sorted(strings_of(value), key=str.encode) if isinstance(value, list) else [text_of(value)]


def _trim_all(chars: Value, value: Value) -> str:
    return text(value, "trimAll").strip(text(chars, "trimAll"))


def _abbreviated(width: Value, value: Value) -> str:
    count, given = integer(width, "abbrev"), text(value, "abbrev")
    return given if count < 4 or len(given) <= count else f"{given[: count - 3]}..."


def _abbreviated_both(left: Value, right: Value, value: Value) -> str:
    offset, width, given = integer(left, "abbrevboth"), integer(right, "abbrevboth"), text(value, "abbrevboth")
    length = len(given)
    if width < 4 or (offset > 0 and width < 7) or length <= width:
        return given
    offset = min(offset, length)
    if length - offset < width - 3:
        offset = length - (width - 3)
    if offset <= 4:
        return f"{given[: width - 3]}..."
    if offset + width - 3 < length:
        rest, most = given[offset:], width - 3
        return "..." + (rest if len(rest) <= most else f"{rest[: most - 3]}...")
    return f"...{given[length - (width - 3) :]}"


def _wrapped(width: Value, newline: str, value: Value, *, breaks: bool) -> str:
    """Return a text with a newline in place of the last space of each line."""
    size, given = max(integer(width, "wrap"), 1), text(value, "wrap")
    _bounded(len(given) + (len(given) // size + 1) * len(newline), "wrap")
    parts: list[str] = []
    at = 0
    while len(given) - at > size:
        if given[at] == " ":
            at += 1
            continue
        space = given.rfind(" ", at, at + size + 1)
        if space < at and breaks:
            parts.append(given[at : at + size])
            at += size
            continue
        if space < at:
            space = given.find(" ", at + size)
        if space < 0:
            parts.append(given[at:])
            return newline.join(parts)
        parts.append(given[at:space])
        at = space + 1
    return newline.join([*parts, given[at:]])


_WORD: Final = late_pattern("[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+[a-z]*|[^A-Za-z0-9 _-]+", re.ASCII)
_MOST_WORDS: Final = 1 << 16


def _words(value: Value, whose: str) -> list[str]:
    given = text(value, whose)
    if len(given) > _MOST_WORDS:
        raise TemplateError(f"{whose}: a text of more than {_MOST_WORDS} characters")
    return _WORD.findall(given)


def _joined(separator: str, whose: str) -> Function:
    return lambda value: separator.join(map(to_lower, _words(value, whose)))


def _camel(value: Value) -> str:
    return "".join(to_upper(each[0]) + to_lower(each[1:]) for each in _words(value, "camelcase"))


def _untitled(value: Value) -> str:
    given = text(value, "untitle")
    return "".join(
        to_lower(char) if not number or not split_space(given[number - 1]) else char
        for number, char in enumerate(given)
    )


def _swapped(value: Value) -> str:
    return "".join(to_lower(char) if to_lower(char) != char else to_upper(char) for char in text(value, "swapcase"))


TEXTS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "abbrev": _abbreviated,
        "abbrevboth": _abbreviated_both,
        "camelcase": _camel,
        "cat": _cat,
        "contains": lambda part, value: text(part, "contains") in text(value, "contains"),
        "hasPrefix": lambda part, value: text(value, "hasPrefix").startswith(text(part, "hasPrefix")),
        "hasSuffix": lambda part, value: text(value, "hasSuffix").endswith(text(part, "hasSuffix")),
        "hello": lambda: "Hello!",
        "indent": _indent,
        "initials": lambda value: "".join(each[0] for each in split_space(text(value, "initials"))),
        "join": _join,
        "kebabcase": _joined("-", "kebabcase"),
        "lower": lambda value: to_lower(text(value, "lower")),
        "nindent": _nindent,
        "nospace": lambda value: "".join(split_space(text(value, "nospace"))),
        "plural": _plural,
        "quote": _quote,
        "repeat": _repeat,
        "replace": _replace,
        "snakecase": _joined("_", "snakecase"),
        "sortAlpha": _sorted,
        "split": _split,
        "splitList": _split_list,
        "splitn": _splitn,
        "squote": _single_quote,
        "substr": _substr,
        "swapcase": _swapped,
        "title": _title,
        "toString": text_of,
        "toStrings": strings_of,
        "trim": lambda value: trim_space(text(value, "trim")),
        "trimAll": _trim_all,
        "trimPrefix": lambda part, value: text(value, "trimPrefix").removeprefix(text(part, "trimPrefix")),
        "trimSuffix": lambda part, value: text(value, "trimSuffix").removesuffix(text(part, "trimSuffix")),
        "trimall": _trim_all,
        "trunc": _trunc,
        "untitle": _untitled,
        "upper": lambda value: to_upper(text(value, "upper")),
        "wrap": lambda width, value: _wrapped(width, "\n", value, breaks=False),
        "wrapWith": lambda width, newline, value: _wrapped(width, text(newline, "wrapWith"), value, breaks=True),
    }
)
