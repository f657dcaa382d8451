"""Encoded response fields: HPACK against an independent decoder, and the cache's limits."""

from __future__ import annotations

import contextlib
from email.utils import formatdate
from typing import Any

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st
from jh2._hazmat import Decoder as Jh2Decoder
from jh2._hazmat import HPACKError, OversizedHeaderListError

from steersman.net.fields import FieldCache, http_date
from steersman.net.http1 import exchange as http1_exchange
from steersman.net.http2 import hpack

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=200)
VALUES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=300)


@given(st.integers(100, 599), st.lists(st.tuples(NAMES, VALUES)), st.integers(0, 10**18))
def test_encoded_heads_mean_what_they_should(status: Any, headers: Any, length: Any) -> None:
    fields = FieldCache(hpack.field)
    block = b"".join([hpack.STATUSES[status], *fields.encode(headers), hpack.content_length(length)])
    expected = [(":status", str(status)), *headers, ("content-length", str(length))]
    assert [tuple(field) for field in Decoder().decode(block)] == expected


@given(st.lists(st.tuples(NAMES, VALUES), min_size=1), st.booleans(), st.data())
def test_the_fields_of_a_block_are_counted_and_a_cut_inside_a_field_is_seen(
    headers: Any, huffman: Any, data: Any
) -> None:
    encoder = Encoder()
    blocks = [encoder.encode([field], huffman=huffman) for field in [*headers, *headers]]
    assert hpack.count_fields(b"".join(blocks), 10_000) == len(blocks)
    last = blocks[data.draw(st.integers(0, len(blocks) - 1))]
    assert all(hpack.count_fields(last[:size], 10_000) is None for size in range(1, len(last)))


@given(st.lists(st.tuples(NAMES, VALUES), min_size=1), st.binary(min_size=1, max_size=8))
def test_a_string_in_huffman_code_ends_in_ones(headers: Any, more: Any) -> None:
    block = Encoder().encode([*headers, ("x", more)], huffman=True)
    coded: list[hpack.Coded] = []
    assert hpack.count_fields(block, 10_000, coded) == len(headers) + 1
    decoded = [(name.encode(), value.encode()) for name, value in headers] + [(b"x", more)]
    assert all(hpack.is_padded_well(decoded[each.field][each.part], each) for each in coded)
    spare = -sum(hpack.CODE_BITS[each] for each in more) % 8
    if spare:
        last = hpack.Coded(len(headers), 1, -(-sum(hpack.CODE_BITS[each] for each in more) // 8), block[-1] & 0xFE)
        assert not hpack.is_padded_well(more, last)


def test_the_size_of_the_table_changes_at_the_beginning_of_a_block_only() -> None:
    assert hpack.count_fields(b"\x20\x3f\xe1\x1f\x82", 10) == 1
    assert hpack.count_fields(b"\x82\x20", 10) is None


def test_counting_stops_at_the_limit() -> None:
    class Counted(bytes):
        looked_at = 0

        def __getitem__(self, place: Any) -> Any:
            Counted.looked_at += 1
            return super().__getitem__(place)

    assert hpack.count_fields(Counted(b"\x82" * 900_000), 1000) == 1001
    assert Counted.looked_at < 2000
    assert hpack.count_fields(Counted(b"\x20" * 900_000 + b"\x82"), 1000) == 1001
    assert hpack.count_fields(Counted(b"\x3f\x00" * 450_000 + b"\x82"), 1000) == 1001
    assert Counted.looked_at < 10_000
    assert hpack.count_fields(b"\x20" * 1000 + b"\x82", 1000) == 1


@given(st.binary(max_size=30))
def test_whatever_is_complete_can_be_decoded_or_refused(block: Any) -> None:
    if hpack.count_fields(block, 100) is not None:
        with contextlib.suppress(HPACKError, OversizedHeaderListError):
            Jh2Decoder(1000).decode(block, True)


@given(st.integers(0, 1 << 40), st.integers(1, 8))
def test_integers_decode_to_themselves(value: Any, bits: Any) -> None:
    encoded = hpack.integer(value, bits)
    limit = (1 << bits) - 1
    decoded = encoded[0] & limit
    if decoded == limit:
        decoded += sum((byte & 0x7F) << (7 * n) for n, byte in enumerate(encoded[1:]))
    assert decoded == value


@pytest.mark.parametrize("field", [("a b", "c"), ("A", "c"), ("", "c"), ("a", "b\r\nc"), ("a", "b\0"), ("a:", "b")])
def test_fields_that_must_not_be_sent_are_refused(field: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        FieldCache(hpack.field).encode([field])


def test_values_that_repeat_are_encoded_once_and_ever_new_ones_are_not_kept() -> None:
    made = []

    def encode(name: str, value: str) -> bytes:
        made.append(value)
        return http1_exchange.field(name, value)

    fields = FieldCache(encode)
    for n in range(1000):
        got = fields.encode([("content-type", "text/plain"), ("audit-id", str(n))])
        assert got == [b"Content-Type: text/plain\r\n", b"Audit-Id: %d\r\n" % n]
    assert made.count("text/plain") == 1
    assert len(fields._fields) < 100


@given(st.integers(0, 4_102_444_800))
def test_dates_are_those_of_email_utils(second: int) -> None:
    assert http_date(second) == formatdate(second, usegmt=True)
