"""Streams of JSON and YAML documents, divided as kubectl divides them."""

from __future__ import annotations

import pytest

from steersman.machinery.codec.document_streams import Piece, pieces
from steersman.machinery.codec.yaml import YAMLError, load_all


def _divided(text: str) -> list[tuple[str, bool, int]]:
    return [(each.data.decode(), each.is_json, each.line) for each in pieces(text.encode())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("", False, 1)]),
        ("kind: a\n---\n{}", [("kind: a\n---\n{}", False, 1)]),
        ('{"a":1}{"b":"}{"}\n\n {"c":[]}', [('{"a":1}', True, 1), ('{"b":"}{"}', True, 1), ('{"c":[]}', True, 3)]),
        ('\n{"a":1}\n---\nb: 1', [('{"a":1}', True, 2), ("---\nb: 1", False, 3)]),
        ('{"a":1}---\nb: 1', [('{"a":1}', True, 1), ("---\nb: 1", False, 1)]),
        ("{a: 1}\n---\nb: 1", [("{a: 1}\n---\nb: 1", False, 1)]),
        ('{"a":NaN}', [('{"a":NaN}', False, 1)]),
        ('{"a":' + "9" * 5000 + "}", [('{"a":' + "9" * 5000 + "}", True, 1)]),
    ],
)
def test_json_documents_follow_each_other_and_the_rest_is_yaml(
    text: str, expected: list[tuple[str, bool, int]]
) -> None:
    assert _divided(text) == expected


def test_after_two_json_documents_the_rest_is_no_yaml() -> None:
    with pytest.raises(YAMLError, match="line 3 column 1"):
        _divided('{"a":1}\n{"b":1}\n---\nc: 1')


def test_the_error_of_what_is_neither_is_that_about_json() -> None:
    (piece,) = pieces(b'{"a":1,,}')
    with pytest.raises(YAMLError, match="column 8"):
        list(piece.read(load_all))
    with pytest.raises(YAMLError, match="line 2"):
        list(Piece(b"b: [", False, 1).read(load_all))


def test_errors_of_yaml_have_the_lines_of_the_stream() -> None:
    *_, rest = pieces(b'{"a":1}\n---\nb: [')
    with pytest.raises(YAMLError, match="line 4"):
        load_all(rest.at_its_line)


@pytest.mark.parametrize("text", [b'{"a":' * 20_000, b'{"a":"\xff"}{}'])
def test_deep_documents_and_other_encodings_are_refused(text: bytes) -> None:
    with pytest.raises(YAMLError):
        list(pieces(text))
