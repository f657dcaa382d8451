"""Fast JSON encoding and decoding: codecs cached for each class, and the same text as Go's encoder.

Malformed, unknown and repeated members are not explained here: `machinery.codec.strict` finds the error and words it as
upstream. Objects of generated classes are Structs; custom resources and other objects without a class are dicts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from steersman.api import scalars
from steersman.machinery.errors.field import json_float
from steersman.machinery.sorted_maps import presorted_json
from steersman.machinery.values.durations import canonical_duration
from steersman.machinery.values.quantity import canonical_of_json, canonical_of_text
from steersman.machinery.values.times import canonical_micro_time, canonical_time
from steersman.work.patterns import late_pattern

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder(order="deterministic")
_IN_ORDER = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="sorted")
_PLAIN_DECODER: msgspec.json.Decoder[Any]
_AS_SENT_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

_DIGITS = bytes(0x30 if 0x30 <= byte <= 0x39 else 0 for byte in range(256))
_MANY_DIGITS = b"0" * 19
_EXPONENTS_FROM = 1e21
"""The number from which Go prints floats with an exponent."""
_EXPONENTS_BELOW = 1e-3
"""No encoder writes an exponent for numbers between this one and _EXPONENTS_FROM."""


def whole_or_float(value: float) -> int | float:
    """Return a float64 as Go prints it: an int if it has no fraction and is below 1e21."""
    if value.is_integer() and abs(value) < _EXPONENTS_FROM:
        return int(value) if abs(value) < 2**53 else int(Decimal(repr(value)))
    if not _EXPONENTS_BELOW <= abs(value) < _EXPONENTS_FROM:
        global _has_exponents
        _has_exponents = True
    return value


_has_exponents = False
"""True once this process has decoded a float that may be encoded with an exponent. Until then encoding skips the
search.
"""
_EXPONENT = late_pattern(rb"[:,\[]-?[0-9](?:\.[0-9]++)?e(?:-6|[1-9][0-9])")
"""A number that msgspec may write differently from Go. It may match inside a string, too."""
_EXPONENT_OR_TEXT = late_pattern(
    rb'"(?:[^"\\]|\\.)*+"|-?[0-9](?:\.[0-9]++)?e(?:-6|2[1-9]|[3-9][0-9]|[1-3][0-9][0-9])(?![0-9])', re.DOTALL
)


def _with_go_exponents(data: bytes) -> bytes:
    """Return JSON with exponents as Go's encoder writes them: 1e+21 for 1e21, 0.000001 for 1e-6."""
    return data if _EXPONENT.search(data) is None else _EXPONENT_OR_TEXT.sub(_as_go, data)


def _as_go(match: re.Match[bytes]) -> bytes:
    text = match[0]
    return text if text[:1] == b'"' else json_float(float(text)).encode()


def _float(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("the number is too large")
    return whole_or_float(value)


def _float64(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    return whole_or_float(float(value))


_HOOKS: dict[Any, Callable[[Any], Any]] = {
    scalars.Quantity: canonical_of_json,
    scalars.Time: canonical_time,
    scalars.MicroTime: canonical_micro_time,
    scalars.Duration: canonical_duration,
    scalars.Float64: _float64,
}
_TEXTS: Final = (scalars.Time, scalars.MicroTime, scalars.Duration)


def decode_scalar(scalar: type, value: Any) -> Any:
    """Return the canonical value of a scalar class. Raises ValueError with upstream's message."""
    if value.__class__ is str:
        if scalar is scalars.Quantity:
            return canonical_of_text(value)
    elif scalar in _TEXTS:
        raise ValueError("not text")
    return _HOOKS[scalar](value)


_PLAIN_DECODER = msgspec.json.Decoder(float_hook=_float)


def _decoder(cls: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a class, which refuses unknown members, wrong types and most nulls."""
    return msgspec.json.Decoder(cls, dec_hook=decode_scalar, float_hook=_float)


decoder: Callable[[Any], msgspec.json.Decoder[Any]] = lru_cache(maxsize=2048)(_decoder)
"""Return the decoder of a class, which refuses unknown members, wrong types and most nulls."""


_unchanged: Callable[[type, Any], Any] = dict[type, Any]().get
"""Return a value of a scalar class as it is. The type is a key that the dict does not have, so that no function of
Python is called."""


def _decoder_of_own(cls: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a class for encoded objects of this server, whose scalars are canonical already."""
    return msgspec.json.Decoder(cls, dec_hook=_unchanged, float_hook=_float)


decoder_of_own: Callable[[Any], msgspec.json.Decoder[Any]] = lru_cache(maxsize=2048)(_decoder_of_own)
"""The decoder of a class for what was encoded from a decoded object: its scalars are canonical already."""


def decode_json(cls: type[T], data: bytes) -> T:
    """Decode JSON that this server has written. Raises msgspec.DecodeError, msgspec.ValidationError."""
    return cast("T", decoder(cls).decode(data))


def decode_plain(data: bytes) -> Any:
    """Decode JSON as dicts, lists, text and numbers.

    Floats without a fraction become ints, and ints too big for Go become floats. Raises msgspec.DecodeError, and
    RecursionError for too deep nesting.
    """
    value = _PLAIN_DECODER.decode(data)
    return _without_big_integers(value) if _may_have_big_integers(data) else value


def decode_as_sent(data: bytes) -> Any:
    """Decode JSON as `decode_plain` does, but keep floats without a fraction: Go tells 1.0 from the integer 1.

    Raises msgspec.DecodeError, and RecursionError for too deep nesting.
    """
    value = _AS_SENT_DECODER.decode(data)
    return _without_big_integers(value, float) if _may_have_big_integers(data) else value


def _may_have_big_integers(data: bytes) -> bool:
    """Return True if there are 19 consecutive digits. Faster than a regular expression, which is tried at each byte."""
    return _MANY_DIGITS in bytes(data).translate(_DIGITS)


def _without_big_integers(value: Any, to_number: Callable[[float], int | float] = whole_or_float) -> Any:
    if isinstance(value, dict):
        return {key: _without_big_integers(item, to_number) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_big_integers(item, to_number) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        try:
            return to_number(float(value))
        except OverflowError:
            raise msgspec.DecodeError("the number is too large") from None
    return value


def encode(obj: Any) -> bytes:
    """Return compact JSON as Go writes it: members in the order of the type, keys of maps (and plain dicts) sorted."""
    data = _ENCODER.encode(presorted_json(obj))
    return escape_html(_with_go_exponents(data) if _has_exponents else data)


def encode_in_order(data: Any) -> bytes:
    """Return compact JSON with the keys of dicts in their present order, for data that was ordered by hand."""
    encoded = _IN_ORDER.encode(data)
    return escape_html(_with_go_exponents(encoded) if _has_exponents else encoded)


def encode_sorted(data: Any) -> bytes:
    """Return compact JSON with all names sorted, including the members of Structs, as Go writes a map."""
    encoded = _SORTED.encode(presorted_json(data))
    return escape_html(_with_go_exponents(encoded) if _has_exponents else encoded)


def escape_html(data: bytes) -> bytes:
    """Return JSON with <, >, &, U+2028 and U+2029 escaped, as Go's encoder does."""
    if 0x3C in data:
        data = data.replace(b"<", b"\\u003c")
    if 0x3E in data:
        data = data.replace(b">", b"\\u003e")
    if 0x26 in data:
        data = data.replace(b"&", b"\\u0026")
    if 0xE2 in data:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return data


def empty_to_null(value: Any) -> None:
    """Set, in place, each empty list whose JSON is null when unset to None.

    Upstream reads such lists back from storage as null, because protobuf has no empty lists.
    """
    if isinstance(value, msgspec.Struct):
        printed = _printed_if_none(type(value))
        for name in value.__struct_fields__:
            member = getattr(value, name)
            if name in printed and isinstance(member, list) and not member:
                setattr(value, name, None)
            elif isinstance(member, msgspec.Struct | list | dict):
                empty_to_null(member)
    elif isinstance(value, list | dict):
        for member in value if isinstance(value, list) else value.values():
            empty_to_null(member)


@lru_cache(maxsize=2048)
def _printed_if_none(cls: type[msgspec.Struct]) -> frozenset[str]:
    """Return the names of the members whose JSON is null when they are not set."""
    return frozenset(each.name for each in msgspec.structs.fields(cls) if each.default_factory is scalars.nil)


def to_plain(obj: Any) -> Any:
    """Return `obj` as dicts and lists under its wire names, with exactly the members that its JSON has."""
    return _PLAIN_DECODER.decode(_ENCODER.encode(presorted_json(obj)))


def from_plain(cls: type[T], data: Any) -> T:
    """Return an object of `cls` from the result of `to_plain`. Raises msgspec.ValidationError."""
    return cast("T", decoder(cls).decode(_IN_ORDER.encode(data)))


def deep_copy(obj: T) -> T:
    """Return a copy that shares nothing with `obj`, several times faster than copy.deepcopy."""
    return cast("T", decoder(type(obj)).decode(_IN_ORDER.encode(obj)))


def pretty(data: bytes) -> bytes:
    """Return JSON with line breaks and an indentation of two spaces, as Go's json.Indent; without a final line break."""
    return msgspec.json.format(data, indent=2)


def compact(data: bytes) -> bytes:
    """Return JSON without white space; numbers, text and order stay as they are."""
    return msgspec.json.format(data, indent=-1)
