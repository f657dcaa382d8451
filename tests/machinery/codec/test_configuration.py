"""Configuration documents: what cannot be read is told by one error."""

from __future__ import annotations

import pytest

from steersman.machinery.codec.configuration import STRINGS, decode_document, document_type
from steersman.machinery.codec.strict import DecodeError

_KINDS = {("v1", "Any"): document_type("v1.Any", {"names": STRINGS})}


@pytest.mark.parametrize(
    "data",
    [
        b"- a\n" * 100_000,
        b'{"kind":"Any","apiVersion":"v1","names":' + b"[" * 100_000,
        b"kind: Any\napiVersion: v1\nnames: " + b"[" * 100_000,
        b"kind: Any\napiVersion: v1\nnames: &a [" + b"b, " * 1000 + b"]\nmore: [" + b"*a, " * 1000 + b"]",
        b"\xff\xfe",
        b"",
    ],
)
def test_what_has_too_much_is_refused_as_what_cannot_be_read(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_document(data, _KINDS)
