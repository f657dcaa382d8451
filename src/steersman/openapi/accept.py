"""Negotiation of the encoding of an OpenAPI document by the Accept header (follows kube-openapi's handlers)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from steersman.machinery.errors.go_numbers import parse_float


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding of a document: the media subtypes that request it, and the content type of the response."""

    subtypes: tuple[str, ...]
    content_type: str


JSON = Encoding(("json",), "application/json")
PROTOBUF_V2 = Encoding(
    ("com.github.proto-openapi.spec.v2@v1.0+protobuf", "com.github.proto-openapi.spec.v2.v1.0+protobuf"),
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
)
PROTOBUF_V3 = Encoding(
    ("com.github.proto-openapi.spec.v3.v1.0+protobuf", "com.github.proto-openapi.spec.v3@v1.0+protobuf"),
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
)


@lru_cache(256)
def accepted(accept: str, offered: tuple[Encoding, ...]) -> Encoding | None:
    """Return the offered encoding that the header rates highest, None if it accepts none.

    A missing header accepts every encoding.
    """
    for _, _, _, major, minor in media_ranges(accept):
        for encoding in offered:
            if major in ("application", "*") and (minor == "*" or minor in encoding.subtypes):
                return encoding
    return None


def media_ranges(accept: str) -> list[tuple[float, bool, bool, str, str]]:
    """Return the valid media ranges of an Accept header, the best first; type and subtype are the last two items."""
    return sorted(filter(None, map(_media_range, (accept or "*/*").split(","))))


def _media_range(text: str) -> tuple[float, bool, bool, str, str] | None:
    """Parse a media range into a sort key, the best first; None if it is malformed."""
    media, *parameters = text.strip(" ").split(";")
    major, slash, minor = (part.strip(" ") for part in media.partition("/"))
    if major == "*" and not slash:
        minor = "*"
    if not minor or "/" in minor:
        return None
    quality = 1.0
    for name, _, value in (parameter.partition("=") for parameter in parameters):
        if name.strip(" ") == "q":
            try:
                quality = parse_float(value)
            except ValueError:
                quality = 0.0
    return -quality, major == "*", minor == "*", major, minor
