"""OpenAPI documents as gnostic's protobuf messages."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.net.protobuf_fields import varint
from steersman.openapi.protobuf import Message, double, encode_document, integer, named, string
from steersman.openapi.v2_messages import DOCUMENT as V2_DOCUMENT
from steersman.openapi.v3_messages import DOCUMENT as V3_DOCUMENT
from tests.openapi.built_documents import every_v3

VECTORS = json.loads(Path(__file__).with_name("recorded_messages.json").read_bytes())
MESSAGES = {"v2": V2_DOCUMENT, "v3": V3_DOCUMENT}


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message by number; lengths must add up."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        match tag & 7:
            case 0:
                value, at = read_varint(data, at)
                yield tag >> 3, value
            case 1:
                yield tag >> 3, struct.unpack_from("<d", data, at)[0]
                at += 8
            case 2:
                size, at = read_varint(data, at)
                assert at + size <= len(data)
                yield tag >> 3, data[at : at + size]
                at += size
            case other:
                pytest.fail(f"wire type {other}")


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_bytes_are_those_of_gnostic(version: str) -> None:
    vector = VECTORS[version]
    assert encode_document(MESSAGES[version], vector["document"]).hex() == vector["protobuf"]


def test_fields_are_written_in_the_order_of_their_numbers_whatever_that_of_the_members() -> None:
    document = VECTORS["v3"]["document"]
    backwards = dict(reversed(document.items()))
    assert encode_document(V3_DOCUMENT, backwards).hex() == VECTORS["v3"]["protobuf"]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_are_64_bit_twos_complement(value: int) -> None:
    data = varint(value)
    decoded, end = read_varint(data, 0)
    assert (end, decoded) == (len(data), value & (2**64 - 1))


@given(st.dictionaries(st.text(), st.text(), max_size=5), st.text(), st.integers(-(2**63), 2**63 - 1), st.floats())
def test_messages_hold_what_went_in(names: dict[str, str], text: str, number: int, real: float) -> None:
    pair_value = Message({"text": string(3)})
    body = Message({"text": string(1), "number": integer(2000), "real": double(7), "names": named(4, pair_value)})
    found = list(
        fields(
            body(
                {
                    "names": {k: {"text": v} for k, v in names.items()},
                    "real": real,
                    "number": number,
                    "text": text,
                    "unknown": 1,
                }
            )
        )
    )
    assert [each for each, _ in found] == sorted(each for each, _ in found)
    values = dict(found)
    assert values.get(1, b"").decode() == text
    assert values.get(2000, 0) == number & (2**64 - 1)
    assert struct.pack("<d", values.get(7, 0.0)) == struct.pack("<d", real if real else 0.0)
    pairs = [dict(fields(value)) for each, value in found if each == 4]
    assert [(pair[1].decode(), dict(fields(pair[2])).get(3, b"").decode()) for pair in pairs] == list(names.items())


def test_every_member_of_the_stored_documents_has_a_field() -> None:
    """A name outside the tables would be left out silently."""
    seen: set[str] = set()

    class Recording(dict[str, Any]):
        def items(self) -> Any:
            for name, value in super().items():
                seen.add(name)
                yield name, value

    tree = every_v3()["apis/apps/v1"]
    data = encode_document(V3_DOCUMENT, Recording(tree))
    assert seen == set(tree)
    by_number = dict(fields(data))
    paths = [dict(fields(value))[1].decode() for number, value in fields(by_number[4]) if number == 1]
    schemas = [dict(fields(value))[1].decode() for _, value in fields(dict(fields(by_number[5]))[1])]
    assert paths == list(tree["paths"])
    assert schemas == list(tree["components"]["schemas"])
