"""The query of a request: its parameters by name, as Go's net/url reads them."""

from __future__ import annotations

import binascii
import re
from typing import Final
from urllib.parse import unquote

from steersman.machinery.go.strings import to_lower

_MOST_PARAMETERS: Final = 10_000
"""Go takes a query of more for one that cannot be read: it has none (net/url `urlmaxqueryparams`)."""
_bad_escape: Final = re.compile(r"%(?![0-9a-fA-F]{2})").search
_FEW_ESCAPES: Final = 64


def has_bad_escape(text: str) -> bool:
    """Whether a percent sign in `text` does not begin an escape."""
    return _bad_escape(text) is not None


class Query(dict[str, str]):
    """Query parameters by name, the first of several; `get_all` has them all."""

    __slots__ = ("pairs",)

    pairs: list[tuple[str, str]]

    def get_all(self, name: str) -> list[str]:
        """Every value of `name`, in order."""
        return [value for key, value in self.pairs if key == name]


NO_QUERY: Final = Query()
NO_QUERY.pairs = []


def parse_query(text: str) -> Query:
    """The parameters of a query string. As in Go, pairs that cannot be unescaped or hold a semicolon are left out."""
    if not text or text.count("&") >= _MOST_PARAMETERS:
        return NO_QUERY
    query = Query()
    query.pairs = pairs = []
    for part in text.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        if "%" in part or "+" in part:
            if _bad_escape(key) or _bad_escape(value):
                continue
            key, value = _unescape_parameter(key), _unescape_parameter(value)
        pairs.append((key, value))
        query.setdefault(key, value)
    return query


def first_parameter(text: str, name: str) -> str | None:
    """The same as `parse_query(text).get(name)`, but nothing else of a long query is unescaped."""
    if text.count("&") >= _MOST_PARAMETERS:
        return None
    longest = 3 * len(name)  # with every character escaped
    first = name[0]
    for part in text.split("&"):
        if part[:1] != first and part[:1] != "%":
            continue
        key, _, value = part.partition("=")
        if len(key) > longest or ";" in part or _bad_escape(key) or _unescape_parameter(key) != name:
            continue
        if not _bad_escape(value):
            return _unescape_parameter(value)
    return None


def _unescape_parameter(text: str) -> str:
    """A key or a value of a query whose escapes are all good."""
    return unescape(text.replace("+", " ") if "+" in text else text)


def unescape(text: str) -> str:
    """Percent-decodes `text`; an escape that is none stays as it is."""
    if "%" not in text:
        return text
    if text.count("%") <= _FEW_ESCAPES or not text.isascii() or _bad_escape(text) or "\n" in text or "\r" in text:
        return unquote(text)
    # a C function for the quoted-printable encoding, which has "=41" for "%41": urllib's takes 100 ns for each escape
    return binascii.a2b_qp(text.replace("=", "=3D").replace("%", "=")).decode("utf-8", "replace")


def truthy(text: str | None) -> bool:
    """How a boolean query parameter reads: anything but an absent value, "false" and "0"."""
    return text is not None and to_lower(text) not in ("false", "0")
