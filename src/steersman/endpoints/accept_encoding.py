"""The Accept-Encoding field, as each of upstream's two readers of it has it. Of repeated fields the first counts."""

from __future__ import annotations

from typing import Final

from steersman.machinery.errors.go_numbers import parse_float
from steersman.machinery.go.strings import to_lower, trim_space
from steersman.net.message import Headers

_LONGEST: Final = 2048
"""Characters of the field that are read."""


def takes_gzip(headers: Headers) -> bool:
    """Return True if `gzip` is named without any parameter: objects and lists (responsewriters.SerializeObject)."""
    text = headers.get("accept-encoding", "")[:_LONGEST]
    return "gzip" in text and any(trim_space(each) == "gzip" for each in text.split(","))


def rates_gzip(headers: Headers) -> bool:
    """Return True if the last `gzip` that can be read has a quality above 0: OpenAPI documents (gziphandler)."""
    quality = 0.0
    for text in headers.get("accept-encoding", "")[:_LONGEST].split(","):
        coding, *parameters = map(trim_space, text.split(";"))
        if to_lower(coding) == "gzip":
            try:
                qualities = [parse_float(each[2:]) if each.startswith("q=") else 1.0 for each in parameters]
            except ValueError:
                continue
            quality = qualities[-1] if qualities else 1.0
    return quality > 0.0
