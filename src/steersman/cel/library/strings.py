"""Further functions of strings (cel-go `ext.Strings`, version 2)."""

from __future__ import annotations

from typing import Any, Final

from steersman.cel.environment import Library, Overload
from steersman.cel.library.formatting import format_string, validate_format
from steersman.cel.types import DYN, INT, STRING, Type, list_of
from steersman.cel.values import EvaluationError, TextList, print_value
from steersman.cel.work import spend, spend_on_text

_LIST: Final = list_of(STRING)
_MAX_RESULT: Final = 16 * 1024 * 1024
_CHARACTERS_OF_A_STEP: Final = 4
"""The characters per step for a text that is processed character by character."""


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part) if part else len(text)


def _last_index_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _lower(text: str) -> str:
    spend(len(text) // _CHARACTERS_OF_A_STEP)
    return "".join(each.lower() if each.isascii() else each for each in text)


def _upper(text: str) -> str:
    spend(len(text) // _CHARACTERS_OF_A_STEP)
    return "".join(each.upper() if each.isascii() else each for each in text)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    times = len(text) + 1 if not old else text.count(old)
    if count >= 0:
        times = min(times, count)
    length = len(text) + times * max(len(new) - len(old), 0)
    if length > _MAX_RESULT:
        raise EvaluationError("result of replace() is too large")
    spend_on_text(length)
    return text.replace(old, new, times)


def _split(text: str, separator: str, count: int = -1) -> TextList:
    if count == 0:
        return TextList()
    spend(len(text) // _CHARACTERS_OF_A_STEP)
    if separator:
        return TextList(text.split(separator, count - 1 if count > 0 else -1))
    if count < 0 or count >= len(text):
        return TextList(text)
    return TextList((*text[: count - 1], text[count - 1 :]))


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"  # noqa: E501


def _trim(text: str) -> str:
    return text.strip(_SPACE)


def _join(values: Any, separator: str = "") -> str:
    length = len(values) * len(separator)
    for value in values:
        if not isinstance(value, str):
            raise EvaluationError(f"join: invalid input: {print_value(value)}")
        length += len(value)
    if length > _MAX_RESULT:
        raise EvaluationError("result of join() is too large")
    spend_on_text(length)
    return separator.join(values)


_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _quote(text: str) -> str:
    spend(len(text) // _CHARACTERS_OF_A_STEP)
    return f'"{text.translate(_QUOTED)}"'


def _member(id: str, args: tuple[Type, ...], result: Type, call: Any) -> Overload:
    return Overload(id, args, result, call, member=True)


STRINGS: Final = Library(
    functions={
        "charAt": (_member("string_char_at_int", (STRING, INT), STRING, _char_at),),
        "indexOf": (
            _member("string_index_of_string", (STRING, STRING), INT, _index_of),
            _member("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
        ),
        "lastIndexOf": (
            _member("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
            _member("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_from),
        ),
        "lowerAscii": (_member("string_lower_ascii", (STRING,), STRING, _lower),),
        "replace": (
            _member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
            _member("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
        ),
        "split": (
            _member("string_split_string", (STRING, STRING), _LIST, _split),
            _member("string_split_string_int", (STRING, STRING, INT), _LIST, _split),
        ),
        "substring": (
            _member("string_substring_int", (STRING, INT), STRING, _substring),
            _member("string_substring_int_int", (STRING, INT, INT), STRING, _substring_range),
        ),
        "trim": (_member("string_trim", (STRING,), STRING, _trim),),
        "upperAscii": (_member("string_upper_ascii", (STRING,), STRING, _upper),),
        "format": (_member("string_format", (STRING, list_of(DYN)), STRING, format_string),),
        "strings.quote": (Overload("strings_quote", (STRING,), STRING, _quote),),
        "join": (
            _member("list_join", (_LIST,), STRING, _join),
            _member("list_join_string", (_LIST, STRING), STRING, _join),
        ),
    },
    validators=(validate_format,),
)
