"""Answers of plugins behind sockets, and stored values that plugins have a part in."""

from __future__ import annotations

from typing import Final

from steersman.authentication import external_signer as signer
from steersman.net import protobuf_fields as proto
from steersman.storage.encryption.kms.envelope import EncryptedObject
from steersman.storage.encryption.transformer import TransformError
from tools.fuzz.target import Target, same


def message(data: bytes) -> int:
    """The fields of a message, which are the same when they are written and read again."""
    found = proto.decode(data)
    plain = [(number, value) for number in sorted(found) for value in found[number]]
    if all(value for _, value in plain):  # what is empty is not written
        again = proto.decode(proto.encode(plain))
        same({number: found[number] for number in sorted(found)}, again, "fields that were written again")
    return len(plain)


def encrypted_object(data: bytes) -> int:
    """Check that a stored value that can be read can be written and read again."""
    found = EncryptedObject.decode(data)
    same(EncryptedObject.decode(found.encode()), found, "an object that was written again")
    return found.source_type


def signers_keys(data: bytes) -> int:
    """The keys that a signer of tokens tells of."""
    found, verifier = signer._usable(proto.decode(data))
    same(verifier.candidates(""), len(found.keys), "how many keys there are")
    return len(found.keys)


def signers_header(data: bytes) -> str:
    """The header that a signer puts before a token."""
    return signer._read_header(data.decode("utf-8", "replace")).alg


_WORDS: Final = (
    b"\x0a\x01a",
    b"\x12\x01b",
    b"\x1a\x01c",
    b"\x22\x08\x0a\x03a.b\x12\x01v",
    b"\x28\x01",
    b"\x18\x3c",
    b"\x12\x02\x08\x01",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x0b\x0c",
)
_HEADER_WORDS: Final = (b"eyJhbGciOiJSUzI1NiIsImtpZCI6ImEiLCJ0eXAiOiJKV1QifQ", b"e30", b"=", b"-", b"_", b"W10")

TARGETS: Final = (
    Target("plugin-message", message, (proto.FieldsError,), _WORDS),
    Target("encrypted-object", encrypted_object, (TransformError,), _WORDS),
    Target("signer-keys", signers_keys, (proto.FieldsError, signer.SignerError), _WORDS, base=0.3),
    Target("signer-header", signers_header, (signer.SignerError,), _HEADER_WORDS),
)
