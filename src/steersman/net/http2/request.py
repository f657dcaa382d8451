"""Parsing of decoded HTTP/2 header fields into the head of a request (RFC 9113 section 8)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msgspec import Struct

from steersman.net.ascii import is_digits
from steersman.net.http2.frames import ErrorCode, StreamFault
from steersman.net.message import Headers
from steersman.work.patterns import late_pattern

NAME: Final = late_pattern(rb"[a-z0-9!#$%&'*+.^_`|~-]+")
"""Valid field names."""
_METHOD: Final = late_pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEX_DIGITS: Final = bytes.maketrans(b"h0123456789abcdefABCDEF", b"." + b"h" * 22)
CONTROL: Final = late_pattern(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Control characters that no field value may contain."""
_OF_ONE_CONNECTION: Final = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
)
_MAX_KNOWN: Final = 16
LONGEST_KNOWN_NAME: Final = 64
"""Limit of field names, in bytes, that are cached across connections."""
_PSEUDO: Final = frozenset({":method", ":scheme", ":authority", ":path"})
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})

Fields = list[tuple[bytes, bytes, bool]]
"""Decoded fields: (name, value, True if the field must never be indexed)."""


class Head(Struct):
    """The head of a request, shared by equal requests; `content_length` is None if it was not sent."""

    method: str
    scheme: str
    host: str
    path: str
    query: str
    headers: Headers
    content_length: int | None


def _checked_name(raw: bytes) -> str:
    """Return a field name as text. Raises ValueError for a name that is not allowed."""
    if raw.startswith(b":"):
        name = raw.decode("latin-1")
        if name not in _PSEUDO:
            raise ValueError("unknown pseudo-header field")
        return name
    if not NAME.fullmatch(raw):
        raise ValueError("invalid field name")
    if raw in _OF_ONE_CONNECTION:
        raise ValueError("connection-specific field")
    return raw.decode("ascii")


_field_name = lru_cache(maxsize=1024)(_checked_name)


def text_of(raw: bytes) -> str:
    """Return a field value as text: decoded as UTF-8 if valid, else as Latin-1."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def is_well_escaped(path: str) -> bool:
    """Return True if two hexadecimal digits follow each percent sign. A regular expression would take 50 times as
    long.
    """
    raw = path.encode()
    return raw.translate(_HEX_DIGITS).count(b"%hh") == raw.count(b"%")


class HeadParser:
    """Parser of the heads of one connection, with a cache: most requests differ only in their path."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Head] = {}

    def parse(self, stream_id: int, fields: Fields) -> Head:
        """Return the head of a request. Raises StreamFault if it is malformed."""
        at = 0
        for at, field in enumerate(fields):  # noqa: B007
            if field[0] == b":path":
                break
        else:
            return parse_head(stream_id, fields)
        raw_target = field[1]
        del fields[at]
        key = (at, *fields)
        known = self._known.get(key)
        if known is None:
            head = parse_head(stream_id, [*fields[:at], field, *fields[at:]])
            if len(self._known) < _MAX_KNOWN and sum(len(name) + len(value) for name, value, _ in fields) < 2048:
                self._known[key] = head
            return head
        try:
            target = raw_target.decode() if raw_target.isascii() else text_of(raw_target)
            if not target.isprintable() and CONTROL.search(target):
                raise ValueError("control character in :path")
            path, query = _split(target)
        except ValueError as error:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, str(error)) from None
        return Head(known.method, known.scheme, known.host, path, query, known.headers, known.content_length)


def parse_head(stream_id: int, fields: Fields) -> Head:
    """Return the head of a request. Raises StreamFault if it is malformed."""
    pairs: list[tuple[str, str]] = []
    try:
        for raw, raw_value, _ in fields:
            name = _field_name(raw) if len(raw) <= LONGEST_KNOWN_NAME else _checked_name(raw)
            try:
                value = raw_value.decode()
            except UnicodeDecodeError:
                value = raw_value.decode("latin-1")
            if not value.isprintable() and CONTROL.search(value):
                raise ValueError("control character in a field value")
            pairs.append((name, value))
        return _head(Headers.from_pairs(pairs), pairs)
    except ValueError as error:
        raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR, str(error)) from None


def _head(headers: Headers, pairs: list[tuple[str, str]]) -> Head:
    """Remove the pseudo-header fields from `headers` and return the head. Raises ValueError."""
    count = len(headers)
    take = headers.pop
    method, scheme = take(":method", ""), take(":scheme", None)
    host, target = take(":authority", ""), take(":path", None)
    count -= len(headers)
    # If each of these `count` fields occurs once and comes first, the first `count` pairs are all pseudo-header fields.
    for name, _ in pairs[:count]:
        if name[0] != ":":
            raise ValueError("pseudo-header field after a regular one")
    del pairs[:count]
    if any(name[0] == ":" for name, _ in pairs):
        raise ValueError("pseudo-header field repeated")
    if method not in _METHODS and not _METHOD.fullmatch(method):
        raise ValueError("invalid method")
    if "host" in headers:
        host = host or headers["host"]
        del headers["host"]
        pairs = [field for field in pairs if field[0] != "host"]
    headers.sent = pairs
    if "te" in headers and headers.joined("te") != "trailers":
        raise ValueError("TE other than trailers")
    length = headers.joined("content-length") if "content-length" in headers else None
    if length is not None and not (is_digits(length) and len(length) < 20):
        raise ValueError("invalid content-length")
    content_length = None if length is None else int(length)
    if method == "CONNECT":
        if not host or target is not None or scheme is not None:
            raise ValueError("malformed CONNECT")
        return Head(method, "https", host, "", "", headers, content_length)
    if scheme not in ("https", "http"):
        raise ValueError("invalid :scheme")
    path, query = _split(target or "")
    return Head(method, scheme, host, path, query, headers, content_length)


def _split(target: str) -> tuple[str, str]:
    """Return path and query of :path. Raises ValueError."""
    if not target.startswith("/") and target != "*":
        raise ValueError("invalid :path")
    path, _, query = target.partition("?")
    if "%" in path and not is_well_escaped(path):
        raise ValueError("invalid URL escape in :path")
    return path, query
