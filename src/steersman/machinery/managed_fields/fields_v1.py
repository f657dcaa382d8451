"""Conversion between field sets and their stored JSON (meta/v1 FieldsV1)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from steersman.machinery.codec.json_syntax import MAX_DEPTH_TEXT, syntax_error
from steersman.work.threads import give_way

from .field_set import EMPTY, LEAF, FieldSet, Node, in_order
from .path_elements import SELF, canonical

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()


class FieldsError(ValueError):
    """The error for text that is not FieldsV1."""


REMEMBERED: Final = 8192
"""Bytes of the longest text whose decoded set is cached: similar objects have the same few sets."""


def decode_fields(data: bytes) -> tuple[FieldSet, bool]:
    """Decode FieldsV1; return the set, and True if it would be encoded as the same text. Raises FieldsError."""
    return _decode(data) if len(data) <= REMEMBERED else _decode.__wrapped__(data)


@lru_cache(maxsize=512)
def _decode(data: bytes) -> tuple[FieldSet, bool]:
    try:
        value = _DECODER.decode(data)
        fields = EMPTY if value is None else _children(value)
        return fields, _ENCODER.encode(fields) == data
    except (RecursionError, msgspec.DecodeError, UnicodeDecodeError):
        raise FieldsError(syntax_error(data) or MAX_DEPTH_TEXT) from None
    except ValueError as error:
        raise FieldsError(str(error)) from error


def _children(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FieldsError("not an object")
    out: dict[str, Any] = {}
    for text, child in value.items():
        give_way()
        if text == SELF:
            continue
        element = canonical(text)
        if element is not None:
            out[element] = _node(child)
    return in_order(out)


def _node(value: Any) -> Node:
    if value == {} or value is None:
        return LEAF
    children = _children(value)
    if not children:
        return LEAF
    return {SELF: LEAF, **children} if SELF in value else children


def encode_fields(fields: FieldSet) -> msgspec.Raw:
    """Return the FieldsV1 of a set."""
    return msgspec.Raw(_ENCODER.encode(fields))
