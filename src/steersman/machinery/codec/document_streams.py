"""Streams of JSON and YAML documents, divided as kubectl divides them (`YAMLOrJSONDecoder` of apimachinery).

JSON documents follow each other without separators. Text that begins as JSON and is none, and text after a single JSON
document, is YAML.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from steersman.machinery.codec.yaml import YAMLError
from steersman.machinery.large_work.nesting import is_too_deep

T = TypeVar("T")

_SPACE: Final = " \t\r\n"
_HEAD_BYTES: Final = 4096
"""Bytes at the beginning in which the first brace must be."""
_MOST_BEFORE_YAML: Final = 1
"""Most JSON documents after which the rest may be YAML."""


class Piece(NamedTuple):
    """A JSON document of a stream, or the rest of the stream, which is YAML."""

    data: bytes
    is_json: bool
    line: int
    """Line on which the piece begins, from 1."""
    json_error: str = ""
    """Error with which a rest was read as JSON first."""

    @property
    def at_its_line(self) -> bytes:
        """Data after as many line breaks as the stream has before them, so that errors have the lines of the stream."""
        return b"\n" * (self.line - 1) + self.data

    def read(self, load: Callable[[bytes], Iterable[T]]) -> Iterator[T]:
        """Yield what `load` reads from the piece as YAML. Raises YAMLError: the one about JSON, if there is one."""
        try:
            yield from load(self.at_its_line)
        except YAMLError as error:
            raise (YAMLError(self.json_error) if self.json_error else error) from None


def begins_as_json(data: bytes) -> bool:
    """Return True if the first character after white space is a brace."""
    return data[:_HEAD_BYTES].lstrip(_SPACE.encode())[:1] == b"{"


def pieces(data: bytes) -> Iterator[Piece]:
    """Yield the JSON documents of a stream, and the rest as YAML, if there is one.

    Raises YAMLError for malformed JSON after two documents, for text that is not UTF-8, and for documents nested too
    deeply.
    """
    if not begins_as_json(data):
        yield Piece(data, False, 1)
        return
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YAMLError(f"line {line}: the text is not UTF-8") from None
    if is_too_deep(data):
        raise YAMLError("exceeded max depth")
    count, position, line = 0, _after_space(content, 0), 1 + content.count("\n", 0, _after_space(content, 0))
    while position < len(content):
        try:
            _, end = _DECODER.raw_decode(content, position)
        except ValueError as error:
            if count > _MOST_BEFORE_YAML:
                raise YAMLError(str(error)) from None
            yield Piece(content[position:].encode(), False, line, str(error))
            return
        yield Piece(content[position:end].encode(), True, line)
        count += 1
        beginning, position = position, _after_space(content, end)
        line += content.count("\n", beginning, position)


def _after_space(content: str, position: int) -> int:
    """Return the position of the next character that is no white space."""
    while position < len(content) and content[position] in _SPACE:
        position += 1
    return position


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse, parse_int=str, parse_float=str)
"""Decoder that finds the ends of documents; numbers of any length stay text."""
