"""Names in the bodies of requests that create objects, as paths of such requests have none."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from steersman.machinery.codec.protobuf.documents import decode_envelope
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.net.protobuf_fields import FieldsError, bytes_of, decode, text_of

MOST_BYTES: Final = 256 << 10
"""Bytes of a body that is searched for a name; larger ones count as nameless."""
_PROTOBUF: Final = b"k8s\x00"
_MOST_NAME: Final = 253


class BodyName(NamedTuple):
    """Name of the object in a body, and the prefix from which the server makes a name if there is none."""

    name: str = ""
    generate_name: str = ""


NAMELESS: Final = BodyName()


class _Metadata(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    generate_name: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata = _Metadata()


_DECODER: Final = msgspec.json.Decoder(_Object)


def name_in(body: bytes) -> BodyName:
    """Return the name in a body in JSON or protobuf; NAMELESS for others, and for those of more than MOST_BYTES."""
    if len(body) > MOST_BYTES:
        return NAMELESS
    try:
        found = _in_protobuf(body) if body.startswith(_PROTOBUF) else _in_json(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, DecodeError, FieldsError):
        return NAMELESS
    return BodyName(found.name[:_MOST_NAME], found.generate_name[:_MOST_NAME])


def _in_json(body: bytes) -> BodyName:
    """Return the name in JSON. Raises msgspec.MsgspecError."""
    if is_too_deep(body):
        return NAMELESS
    metadata = _DECODER.decode(body).metadata
    return BodyName(metadata.name, metadata.generate_name)


def _in_protobuf(body: bytes) -> BodyName:
    """Return the name in protobuf: fields 1 and 2 of the metadata, which is field 1 of every object.

    Raises DecodeError, FieldsError.
    """
    metadata = decode(bytes_of(decode(decode_envelope(body).raw), 1))
    return BodyName(text_of(metadata, 1), text_of(metadata, 2))
