"""Functions of strings (sprig `strings.go`). Lengths that Go counts in bytes are counted in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import split_space, to_lower, to_upper, trim_space
from steersman.nodes.stages.go_template.builtins import Function, integer, text
from steersman.nodes.stages.go_template.evaluation import MOST_TEXT
from steersman.nodes.stages.go_template.values import TemplateError, Value, text_of

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


TEXTS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "abbrev": _abbreviated,
        "cat": _cat,
        "contains": lambda part, value: text(part, "contains") in text(value, "contains"),
        "hasPrefix": lambda part, value: text(value, "hasPrefix").startswith(text(part, "hasPrefix")),
        "hasSuffix": lambda part, value: text(value, "hasSuffix").endswith(text(part, "hasSuffix")),
        "indent": _indent,
        "initials": lambda value: "".join(each[0] for each in split_space(text(value, "initials"))),
        "join": _join,
        "lower": lambda value: to_lower(text(value, "lower")),
        "nindent": _nindent,
        "nospace": lambda value: "".join(split_space(text(value, "nospace"))),
        "plural": _plural,
        "quote": _quote,
        "repeat": _repeat,
        "replace": _replace,
        "sortAlpha": _sorted,
        "split": _split,
        "splitList": _split_list,
        "splitn": _splitn,
        "squote": _single_quote,
        "substr": _substr,
        "title": _title,
        "toString": text_of,
        "toStrings": strings_of,
        "trim": lambda value: trim_space(text(value, "trim")),
        "trimAll": _trim_all,
        "trimPrefix": lambda part, value: text(value, "trimPrefix").removeprefix(text(part, "trimPrefix")),
        "trimSuffix": lambda part, value: text(value, "trimSuffix").removesuffix(text(part, "trimSuffix")),
        "trimall": _trim_all,
        "trunc": _trunc,
        "upper": lambda value: to_upper(text(value, "upper")),
    }
)
