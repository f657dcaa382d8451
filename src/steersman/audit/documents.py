"""JSON of objects in audit events: on one line, and without the members that a policy omits."""

from __future__ import annotations

from typing import Final

import msgspec

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAW: Final = msgspec.json.Decoder(msgspec.Raw)
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_ENCODER: Final = msgspec.json.Encoder()
_MEMBER: Final = b'"managedFields"'
_MARKUP: Final = b"&<>"
_ESCAPED: Final = ((b"&", rb"\u0026"), (b"<", rb"\u003c"), (b">", rb"\u003e"))
_SEPARATORS: Final = (("\u2028".encode(), rb"\u2028"), ("\u2029".encode(), rb"\u2029"))


class NotJSON(ValueError):
    """The client's data is not JSON."""


def as_go_escapes(data: bytes) -> bytes:
    """Escape the characters that Go's JSON encoder escapes; they can only occur in strings."""
    if len(data.translate(None, _MARKUP)) != len(data):
        for char, escape in _ESCAPED:
            data = data.replace(char, escape)
    if not data.isascii():
        for char, escape in _SEPARATORS:
            data = data.replace(char, escape)
    return data


def compact(data: bytes) -> bytes:
    """Return a client's JSON without white space between values. Raises NotJSON."""
    try:
        _RAW.decode(data)
        return msgspec.json.format(data, indent=-1)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NotJSON from None


def without_managed_fields(data: bytes) -> bytes:
    """Remove `metadata.managedFields` from the JSON of an object, of a list's items, or of a Table's rows.

    Decodes only the members on the path to them.
    """
    if _MEMBER not in data:
        return data
    members = _OBJECT.decode(data)
    _remove_managed_fields(members)
    for key, below in (("items", ""), ("rows", "object")):
        if key in members:
            members[key] = _clean_items(members[key], below)
    return _ENCODER.encode(members)


def _remove_managed_fields(members: dict[str, msgspec.Raw]) -> None:
    """Remove managedFields from the metadata of a decoded object."""
    metadata = _object(members.get("metadata"))
    if metadata is not None and metadata.pop("managedFields", None) is not None:
        members["metadata"] = msgspec.Raw(_ENCODER.encode(metadata))


def _object(value: msgspec.Raw | None) -> dict[str, msgspec.Raw] | None:
    """Decode the members of a JSON object; None for other values."""
    return _OBJECT.decode(value) if value is not None and bytes(value).startswith(b"{") else None


def _clean_items(items: msgspec.Raw, below: str) -> msgspec.Raw:
    """Remove managedFields from a JSON list of objects; each object is the member `below` of an item, if not ""."""
    if not bytes(items).startswith(b"["):
        return items
    return msgspec.Raw(_ENCODER.encode([_item(item, below) for item in _LIST.decode(items)]))


def _item(item: msgspec.Raw, below: str) -> msgspec.Raw:
    members = _object(item)
    if members is None or _MEMBER not in bytes(item):
        return item
    inner = _object(members.get(below)) if below else members
    if inner is None:
        return item
    _remove_managed_fields(inner)
    if below:
        members[below] = msgspec.Raw(_ENCODER.encode(inner))
    return msgspec.Raw(_ENCODER.encode(members))
