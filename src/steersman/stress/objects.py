"""Names of objects in requests and in events of watches."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from steersman.machinery.codec.protobuf.documents import decode_envelope
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.net.protobuf_fields import FieldsError, bytes_of, decode, text_of


class WatchedEvent(NamedTuple):
    """Type of an event, and the namespace and name of its object; "" for what it does not have."""

    type: str = ""
    namespace: str = ""
    name: str = ""
    generate_name: str = ""


UNKNOWN: Final = WatchedEvent()


class _Metadata(msgspec.Struct, rename="camel", frozen=True):
    namespace: str = ""
    name: str = ""
    generate_name: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _Object = _Object()


_DECODER: Final = msgspec.json.Decoder(_Event)


def event_in(data: bytes) -> WatchedEvent:
    """Return the event in a line of JSON or a frame of protobuf; UNKNOWN for anything else."""
    try:
        return _in_json(data) if data.startswith(b"{") else _in_protobuf(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, DecodeError, FieldsError):
        return UNKNOWN


def _in_json(data: bytes) -> WatchedEvent:
    """Return the event in JSON. Raises msgspec.MsgspecError."""
    if is_too_deep(data):
        return UNKNOWN
    event = _DECODER.decode(data)
    metadata = event.object.metadata
    return WatchedEvent(event.type, metadata.namespace, metadata.name, metadata.generate_name)


def _in_protobuf(data: bytes) -> WatchedEvent:
    """Return the event in protobuf: a length of four bytes, and type and object. Raises DecodeError, FieldsError."""
    event = decode(data[4:])
    document = bytes_of(decode(bytes_of(event, 2)), 1)
    metadata = decode(bytes_of(decode(decode_envelope(document).raw), 1))
    return WatchedEvent(text_of(event, 1), text_of(metadata, 3), text_of(metadata, 1), text_of(metadata, 2))
