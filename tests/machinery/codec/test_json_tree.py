"""Parsing JSON without loss, and Go's errors for invalid JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.codec.json_tree import JSONSyntaxError, Members, Number, decode_text, parse_tree, render
from steersman.machinery.large_work.nesting import MAX_DEPTH


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "unexpected end of JSON input"),
        (b"  ", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b'"abc', "unexpected end of JSON input"),
        (b"nul", "invalid character ' ' in literal null (expecting 'l')"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"1.", "invalid character ' ' after decimal point in numeric literal"),
        (b"1e", "invalid character ' ' in exponent of numeric literal"),
        (b"1e+", "invalid character ' ' in exponent of numeric literal"),
        (b'"\\', "invalid character ' ' in string escape code"),
        (b'"\\u00', "invalid character ' ' in \\u hexadecimal character escape"),
        (b'{"a":"\xff\x00"}', "invalid character '\\x00' in string literal"),
        (b"[1,,2]", "invalid character ',' looking for beginning of value"),
        (b'{,"a":1}', "invalid character ',' looking for beginning of object key string"),
        (b"1 2", "invalid character '2' after top-level value"),
        (b"-01", "invalid character '1' after top-level value"),
        (b'{"a":1}x', "invalid character 'x' after top-level value"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b"{a}", "invalid character 'a' looking for beginning of object key string"),
        (b"{'a'}", "invalid character '\\'' looking for beginning of object key string"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b'{"a":[1}', "invalid character '}' after array element"),
        (b'[{"a":1]', "invalid character ']' after object key:value pair"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b'{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        (b"[nuLl]", "invalid character 'L' in literal null (expecting 'l')"),
        (b"[-x]", "invalid character 'x' in numeric literal"),
        (b"[1.]", "invalid character ']' after decimal point in numeric literal"),
        (b"[1e]", "invalid character ']' in exponent of numeric literal"),
        (b"[1e+x]", "invalid character 'x' in exponent of numeric literal"),
        (b"[01]", "invalid character '1' after array element"),
        (b"[1.5.2]", "invalid character '.' after array element"),
        (b"[NaN]", "invalid character 'N' looking for beginning of value"),
        (b"[-Infinity]", "invalid character 'I' in numeric literal"),
        (b'"\x01"', "invalid character '\\x01' in string literal"),
        (b'"a\nb"', "invalid character '\\n' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12x"', "invalid character 'x' in \\u hexadecimal character escape"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"[" * 20_000, "exceeded max depth"),
        (b"[x" + b"[" * 20_000, "invalid character 'x' looking for beginning of value"),
        (b"[" * (MAX_DEPTH + 1), "exceeded max depth"),
        (b'{"a":' * MAX_DEPTH + b"[", "exceeded max depth"),
    ],
)
def test_syntax_errors_are_told_in_gos_words(text: bytes, message: str) -> None:
    with pytest.raises(JSONSyntaxError) as caught:
        parse_tree(text)
    assert str(caught.value) == message


def test_members_given_twice_and_numbers_are_kept() -> None:
    tree = parse_tree(b' {"a": 1e3, "a": [1.50, "x", null]} ')
    assert tree == Members((("a", Number("1e3")), ("a", [Number("1.50"), "x", None])))
    assert render(tree) == b'{"a":1e3,"a":[1.50,"x",null]}'


def test_bytes_that_are_no_characters_are_replaced_one_by_one() -> None:
    assert decode_text(b"a\xff\xe2\x82z") == "a\ufffd\ufffd\ufffdz"
    assert parse_tree(b'["\\ud800", "\\ud83d\\ude00"]') == ["\ufffd", "😀"]


@given(st.text(alphabet='{}[]",:01.eE+-truefalsn \\"\n', max_size=12))
def test_whatever_is_sent_is_either_read_or_refused(text: str) -> None:
    try:
        tree = parse_tree(text.encode())
    except JSONSyntaxError:
        with pytest.raises(ValueError, match=r"."):
            json.loads(text, parse_constant=_refuse)
    else:
        assert json.loads(render(tree)) == json.loads(text)


def _refuse(name: str) -> None:
    raise ValueError(name)
