"""Texts of clients as Go quotes them: at a cost that is bounded."""

from __future__ import annotations

from time import thread_time

import pytest

from steersman.net.http1.head import quoted


def test_every_character_is_quoted_as_when_it_stands_alone() -> None:
    text = "".join(map(chr, (*range(0x20), *range(0x7F, 0x500), 0xE000, 0xF0000)))
    assert quoted(text.encode()) == f'"{"".join(quoted(char.encode())[1:-1] for char in text)}"'
    assert quoted(b'a"\\\r\x01\x7f\xff' + "é\x85\U000f0000".encode()) == r'"a\"\\\r\x01\x7f\xffé\u0085\U000f0000"'


@pytest.mark.parametrize("char", [b"\x01", b"\x00a", "\ue000".encode()])
def test_quoting_costs_little_whatever_is_quoted(char: bytes) -> None:
    raw = char * 200_000
    began = thread_time()
    assert [each for each in raw.decode() if not each.isprintable()]
    looked = thread_time()
    assert quoted(raw).startswith('"\\')
    assert thread_time() - looked < 2 * (looked - began) + 0.005  # a look at each character and an escape is dearer
