"""Quoting of client texts as in Go, at bounded cost."""

from __future__ import annotations

from time import thread_time

import pytest

from steersman.net.http1 import head
from steersman.net.http1.head import quoted


def test_every_character_is_quoted_as_when_it_stands_alone() -> None:
    text = "".join(map(chr, (*range(0x20), *range(0x7F, 0x500), 0xE000, 0xF0000)))
    assert quoted(text.encode()) == f'"{"".join(quoted(char.encode())[1:-1] for char in text)}"'
    assert quoted(b'a"\\\r\x01\x7f\xff' + "é\x85\U000f0000".encode()) == r'"a\"\\\r\x01\x7f\xffé\u0085\U000f0000"'


def test_every_byte_that_is_no_text_is_quoted() -> None:
    assert quoted(bytes(range(0x80, 0x100))) == '"' + "".join(f"\\x{byte:02x}" for byte in range(0x80, 0x100)) + '"'
    assert quoted(b"\xed\xb2\x80\xff\xf0\x9f") == r'"\xed\xb2\x80\xff\xf0\x9f"'  # a surrogate is no UTF-8


def test_a_line_that_cannot_be_read_is_quoted_only_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def counted(raw: bytes) -> str:
        asked.append(raw)
        return quoted(raw)

    monkeypatch.setattr(head, "quoted", counted)
    for block in (b"a: \x01\xff\r\n\r\n", b"a\r\n\r\n", b" a\r\n\r\n"):
        with pytest.raises(head.Fault, match="400 Bad Request"):
            head.request_fields(block, "1.1", 10)
    assert asked == []
    with pytest.raises(head.MalformedFields) as caught:
        head.read_fields(b"a: \x01\xff\r\n\r\n", 10)
    assert str(caught.value) == r'malformed MIME header line: "a: \x01\xff"'


@pytest.mark.parametrize("char", [b"\x01", b"\x00a", "\ue000".encode(), b"\xff\x01", b"\xffa"])
def test_quoting_costs_little_whatever_is_quoted(char: bytes) -> None:
    raw = char * 200_000
    began = thread_time()
    assert [each for each in raw.decode("utf-8", "surrogateescape") if not each.isprintable()]
    looked = thread_time()
    assert quoted(raw).startswith('"\\')
    assert thread_time() - looked < 2 * (looked - began) + 0.005  # a look at each character and an escape is dearer
