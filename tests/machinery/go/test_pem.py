"""PEM blocks among other text."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.go.pem import decode_block


def pem(kind: str, content: bytes) -> bytes:
    return b"-----BEGIN %b-----\n%b\n-----END %b-----\n" % (kind.encode(), base64.b64encode(content), kind.encode())


def test_a_block_is_found_among_other_text() -> None:
    block, rest = decode_block(b"hello\n-----BEGIN X-----\nbroken\n" + pem("KEY", b"content") + b"after")
    assert block is not None
    assert (block.type, block.content, block.has_headers, rest) == ("KEY", b"content", False, b"after")


@given(st.binary(max_size=200))
def test_any_bytes_are_searched_without_failing(text: bytes) -> None:
    block, rest = decode_block(b"-----BEGIN A-----\n" + text + b"\n-----END A-----\n")
    assert block is not None or rest
