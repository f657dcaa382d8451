"""Escapes in texts: each different character is escaped once, so that no text is dear."""

from __future__ import annotations

import re
from time import thread_time
from typing import Any

import pytest

from steersman.machinery.errors.field import quote
from steersman.machinery.go.escaping import escaped
from steersman.machinery.go.printable import is_printable
from steersman.machinery.values import times

_LONG = 100_000
_SPECIAL = re.compile("[^a-z]")


def _hexadecimal(char: str) -> str:
    return "".join(chr(ord("a") + int(digit, 16)) for digit in f"{ord(char):x}")


@pytest.mark.parametrize("text", ["", "abc", "A", "aAbAB", "".join(map(chr, range(0x20, 0x600))) * 2])
def test_each_special_character_is_replaced(text: str) -> None:
    assert escaped(text, _SPECIAL, _hexadecimal) == "".join(
        _hexadecimal(char) if _SPECIAL.match(char) else char for char in text
    )


def test_a_character_is_escaped_once_however_often_it_is_there() -> None:
    asked: list[str] = []

    def escape(char: str) -> str:
        asked.append(char)
        return "x"

    text = "".join(map(chr, range(0x1000, 0x1040)))
    assert escaped(text * 100, _SPECIAL, escape) == "x" * 6400
    assert sorted(asked) == sorted(text)


def test_every_character_is_quoted_as_when_it_stands_alone() -> None:
    text = "".join(chr(code) for code in (*range(0xD800), *range(0xE000, 0x11000), 0x1F600, 0xE0001, 0x10FFFF))
    assert quote(text) == f'"{"".join(quote(char)[1:-1] for char in text)}"'
    assert quote('a"\\\n\x00\x7f\u00ad\U000e0001é') == r'"a\"\\\n\x00\x7f\u00ad\U000e0001é"'


@pytest.mark.parametrize("quoted", [quote, times.quote])
@pytest.mark.parametrize("char", ['"', "\\", "\0", "\n", "\x85", "\ue000", "\U000f0000", "\ufffd"])
def test_quoting_costs_little_whatever_is_quoted(quoted: Any, char: str) -> None:
    quoted(char)
    text = char * _LONG
    began = thread_time()
    assert len([each for each in text if is_printable(each)]) in (0, _LONG)
    looked = thread_time()
    assert quoted(text).startswith('"')
    assert thread_time() - looked < (looked - began) / 2 + 0.005  # a look at each character is dearer
