"""Documents of the media type application/vnd.kubernetes.protobuf, which clients of the built-in kinds mostly use.

A document is a magic number and a `runtime.Unknown` message, which names the kind and holds the object's own message.
Lists and watch events are joined from messages that were encoded before. Custom resources have no protobuf form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from steersman.api.meta.v1 import ListMeta
from steersman.machinery.codec.protobuf.decode import read_message, read_text, small_fields
from steersman.machinery.codec.protobuf.encode import delimited, write_message
from steersman.machinery.codec.protobuf.tables import NotMarshalableError, message_of, varint
from steersman.machinery.codec.protobuf.transcode import transcode
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.identity.schema import GroupVersionKind

__all__ = [
    "MEDIA_TYPE",
    "PREFIX",
    "STREAM_MEDIA_TYPE",
    "DecodeError",
    "Envelope",
    "NotMarshalableError",
    "decode",
    "decode_envelope",
    "decode_object",
    "encode",
    "encode_body",
    "envelope",
    "envelope_ends",
    "frame",
    "list_head",
    "list_item",
    "list_item_size",
    "transcode",
]

T = TypeVar("T", bound=msgspec.Struct)

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
STREAM_MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf;stream=watch"
PREFIX: Final = b"k8s\0"

_NO_CONTENT_TYPE: Final = b"\x1a\0\x22\0"
"""The end of an Unknown message: contentEncoding and contentType, both empty."""
_UNKNOWN: Final = {1: ("TypeMeta", 2), 2: ("Raw", 2), 3: ("ContentEncoding", 2), 4: ("ContentType", 2)}
_TYPE_META: Final = {1: ("APIVersion", 2), 2: ("Kind", 2)}


class Envelope(NamedTuple):
    """The decoded parts of a document; `raw` is the object's own message."""

    api_version: str
    kind: str
    raw: bytes
    content_encoding: str = ""
    content_type: str = ""


def encode(obj: msgspec.Struct, gvk: GroupVersionKind) -> bytes:
    """Return the document of an object; `gvk` replaces its kind and apiVersion. Raises NotMarshalableError."""
    return envelope(encode_body(obj), gvk)


def encode_body(obj: msgspec.Struct) -> bytes:
    """Return the object's own message, as lists hold it. Raises NotMarshalableError."""
    return write_message(message_of(type(obj)), obj)


def envelope(body: bytes, gvk: GroupVersionKind) -> bytes:
    """Return the document of an object's own message."""
    head, tail = envelope_ends(gvk, len(body))
    return head + body + tail


def envelope_ends(gvk: GroupVersionKind, size: int) -> tuple[bytes, bytes]:
    """Return the bytes before and after an object's own message of `size` bytes in a document."""
    return _opening(gvk) + varint(size), _NO_CONTENT_TYPE


@lru_cache(maxsize=1024)
def _opening(gvk: GroupVersionKind) -> bytes:
    """Return the beginning of a document of a kind, up to the length of the object's own message."""
    type_meta = b"\n" + delimited(str(gvk.group_version).encode()) + b"\x12" + delimited(gvk.kind.encode())
    return PREFIX + b"\n" + delimited(type_meta) + b"\x12"


def list_head(metadata: ListMeta) -> bytes:
    """Return the beginning of a list's message: its metadata. `list_item`s follow."""
    return b"\n" + delimited(encode_body(metadata))


def list_item(body: bytes) -> bytes:
    """Return a list item's field from the item's own message."""
    return b"\x12" + delimited(body)


def list_item_size(body: bytes) -> int:
    """Return the length in bytes of `list_item(body)`."""
    length = len(body)
    return length + (2 if length < 128 else 1 + (length.bit_length() + 6) // 7)


def frame(event_type: bytes, document: bytes) -> bytes:
    """Return an event of a watch stream: its length in four bytes, and a WatchEvent with the object's document.

    `event_type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
    """
    event = b"\n" + delimited(event_type) + b"\x12" + delimited(b"\n" + delimited(document))
    return len(event).to_bytes(4, "big") + event


def unframe(event: bytes) -> memoryview:
    """Return the WatchEvent of a `frame` without its length, for transports that delimit messages themselves."""
    return memoryview(event)[4:]


def decode(cls: type[T], raw: bytes) -> T:
    """Return an object of `cls` from its own message; kind and apiVersion stay empty.

    Raises DecodeError, NotMarshalableError.
    """
    return cast("T", read_message(message_of(cls), raw))


def decode_object(cls: type[T], data: bytes) -> T:
    """Return an object of `cls` from a document, with the document's kind and apiVersion.

    Raises DecodeError, NotMarshalableError.
    """
    envelope = decode_envelope(data)
    obj: Any = decode(cls, envelope.raw)
    obj.kind, obj.api_version = envelope.kind, envelope.api_version
    return cast("T", obj)


def decode_envelope(data: bytes) -> Envelope:
    """Return the parts of a document; its object is not decoded. Raises DecodeError."""
    if not data:
        raise DecodeError("empty data")
    if not data.startswith(PREFIX):
        expected = " ".join(map(str, PREFIX))
        raise DecodeError(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    if len(data) == len(PREFIX):
        raise DecodeError("empty body")
    fields = small_fields(data[len(PREFIX) :], _UNKNOWN, "Unknown")
    type_meta = small_fields(b"".join(fields.get(1, ())), _TYPE_META, "TypeMeta")
    return Envelope(
        api_version=_last_text(type_meta, 1),
        kind=_last_text(type_meta, 2),
        raw=fields[2][-1] if 2 in fields else b"",
        content_encoding=_last_text(fields, 3),
        content_type=_last_text(fields, 4),
    )


def _last_text(found: dict[int, list[Any]], number: int) -> str:
    return read_text(found[number][-1]) if number in found else ""
