"""Parsing the constants of CEL: strings with their escapes, and numbers."""

from __future__ import annotations

from typing import Final

_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_LENGTHS: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_INVALID_POINT: Final = "invalid unicode code point"
_CANNOT: Final = "unable to unescape string"

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
MAX_UINT: Final = 2**64 - 1
_MAX_DIGITS: Final = 400
"""The most digits of an integer that is converted; a longer one is too large in any case."""


class LiteralError(ValueError):
    """The text is not a valid constant; the message is the reference implementation's."""


def read_string(text: str) -> str:
    """Parse a string token with its quotes. Raises LiteralError."""
    body, raw = _unquote(text)
    if raw or "\\" not in body:
        return body
    parts = []
    position = 0
    while position < len(body):
        character = body[position]
        if character != "\\":
            parts.append(character)
            position += 1
            continue
        code, position = _escape(body, position, as_bytes=False)
        if isinstance(code, str):
            parts.append(code)
            continue
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise LiteralError(_INVALID_POINT)
        parts.append(chr(code))
    return "".join(parts)


def read_bytes(text: str) -> bytes:
    """Parse a bytes token with `b` and quotes; octal and hexadecimal escapes are bytes. Raises LiteralError."""
    body, raw = _unquote(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    parts = []
    position = 0
    while position < len(body):
        character = body[position]
        if character != "\\":
            parts.append(character.encode())
            position += 1
            continue
        code, position = _escape(body, position, as_bytes=True)
        parts.append(code.encode() if isinstance(code, str) else bytes((code,)))
    return b"".join(parts)


def _unquote(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes], raw


def _escape(body: str, position: int, *, as_bytes: bool) -> tuple[str | int, int]:
    """Return the meaning of an escape, a character or a number, and the offset of its end."""
    kind = body[position + 1]
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple, position + 2
    length = _LENGTHS.get(kind)
    if length is not None:
        if as_bytes and length > 2:
            raise LiteralError(_CANNOT)
        return int(body[position + 2 : position + 2 + length], 16), position + 2 + length
    return int(body[position + 1 : position + 4], 8), position + 4


def read_int(text: str) -> int:
    """Parse a signed 64-bit number, which may be hexadecimal. Raises LiteralError."""
    value = _whole(text)
    if not MIN_INT <= value <= MAX_INT:
        raise LiteralError("invalid int literal")
    return value


def read_uint(text: str) -> int:
    """Parse an unsigned 64-bit number with its `u`. Raises LiteralError."""
    value = _whole(text[:-1])
    if value > MAX_UINT:
        raise LiteralError("invalid uint literal")
    return value


def _whole(text: str) -> int:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    base = 16 if digits.startswith("0x") else 10
    if len(digits) > _MAX_DIGITS:
        digits = digits[2:] if base == 16 else digits
        digits = digits.lstrip("0")
        if len(digits) > _MAX_DIGITS:
            return sign * 2**64
    return sign * int(digits or "0", base)


def read_double(text: str) -> float:
    """Parse a double. Raises LiteralError if it is too large."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value
