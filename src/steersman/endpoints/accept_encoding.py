"""The Accept-Encoding field, parsed as by each of upstream's two readers of it. The first of repeated fields counts."""

from __future__ import annotations

from typing import Final

from steersman.machinery.errors.go_numbers import parse_float
from steersman.machinery.go.strings import to_lower, trim_space
from steersman.net.message import Headers

_LONGEST: Final = 2048
"""Limit of characters of the field that are parsed."""


def accepts_gzip(headers: Headers) -> bool:
    """Return True if `gzip` is listed without any parameter: for objects and lists
    (responsewriters.SerializeObject).
    """
    text = headers.get("accept-encoding", "")[:_LONGEST]
    return "gzip" in text and any(trim_space(each) == "gzip" for each in text.split(","))


def rates_gzip(headers: Headers) -> bool:
    """Return True if the last valid `gzip` entry has a quality above 0: for OpenAPI documents (gziphandler)."""
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
