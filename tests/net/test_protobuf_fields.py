"""Fields of small protobuf messages, and the limits on others."""

from __future__ import annotations

import pytest

from steersman.net import protobuf_fields as proto


def test_what_was_encoded_is_read() -> None:
    data = proto.encode([(1, "a"), (2, 7), (1, b"b"), *proto.encode_map(3, {"k": b"v", "": b""})])
    fields = proto.decode(data)
    assert fields[1] == [b"a", b"b"]
    assert proto.number_of(fields, 2) == 7
    assert proto.map_of(fields, 3) == {"k": b"v", "": b""}


@pytest.mark.parametrize("field", [b"\x08\x01", b"\x22\x00", b"\x0d\x00\x00\x00\x00"])
def test_a_message_of_millions_of_fields_is_not_read(field: bytes) -> None:
    with pytest.raises(proto.FieldsError, match="more than 4096 fields"):
        proto.decode(field * 1_000_000)


def test_an_entry_of_a_map_has_few_fields() -> None:
    entry = proto.encode([(1, "a")]) * 17
    fields = proto.decode(proto.encode([(4, entry)]))
    with pytest.raises(proto.FieldsError, match="more than 16 fields"):
        proto.map_of(fields, 4)
