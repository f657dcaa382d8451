"""Cache of header blocks that decode to the same head again."""

from __future__ import annotations

from steersman.net.http2.blocks import BlockReader
from steersman.net.limits import Limits


def literal(name: bytes, value: bytes) -> bytes:
    """Return a field that enters the table (RFC 7541 section 6.2.1); name and value are shorter than 127 bytes."""
    return bytes([0x40, len(name)]) + name + bytes([len(value)]) + value


def test_a_block_of_few_bytes_that_stands_for_many_is_not_remembered() -> None:
    reader = BlockReader(Limits())
    reader.decode(literal(b":path", b"/") + literal(b"a", b"b" * 120))
    small, large = b"\xbe", b"\xbe" * 60
    for block in (small, large):
        assert sum(len(value) for _, value, _ in reader.decode(block)) == 120 * len(block)
    assert set(reader._fields) == {small}


def test_heads_of_such_blocks_are_not_remembered() -> None:
    reader = BlockReader(Limits())
    of_a_request = literal(b":method", b"GET") + literal(b":scheme", b"https") + literal(b":authority", b"a")
    reader.decode(of_a_request + literal(b":path", b"/") + literal(b"a", b"b" * 120))
    pseudo = b"\xc2\xc1\xc0\xbf"
    for block in (pseudo + b"\xbe", pseudo + b"\xbe" * 60):
        head = reader.head(1, block, list(reader.decode(block)))
        assert head.path == "/"
        assert (reader.cached_head(block) is head) == (len(block) == 5)
