"""The query of a request: parameters by name, as Go's net/url parses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from steersman.machinery.errors.status import bad_request
from steersman.machinery.go.strings import to_lower
from steersman.machinery.go.urls import has_bad_escape, parse_escaped_query, unescape

_MOST_PARAMETERS: Final = 10_000
"""Number of parameters from which on Go rejects a query as a whole (net/url `urlmaxqueryparams`)."""

FEW_ESCAPES: Final = 64
"""Number of escapes up to which they are decoded one by one."""
_LONG: Final = 4 << 10
_FEW_PARTS: Final = 64
"""Thresholds of a query whose parts are searched without copying: its characters, and its number of parts."""
_FLAGS: Final = {"": False, "true": True, "1": True, "false": False, "0": False}
_LONGEST_FLAG: Final = 64
"""Most characters of a malformed boolean that an error quotes."""


class Query(dict[str, str]):
    """Query parameters by name, each with its first value; `get_all` returns all values."""

    __slots__ = ("pairs",)

    pairs: list[tuple[str, str]]

    def get_all(self, name: str) -> list[str]:
        """Return every value of `name`, in order."""
        return [value for key, value in self.pairs if key == name]


NO_QUERY: Final = Query()
NO_QUERY.pairs = []


def query_of(pairs: Iterable[tuple[str, str]]) -> Query:
    """Return a query of these parameters."""
    query = Query()
    query.pairs = list(pairs)
    for name, value in query.pairs:
        query.setdefault(name, value)
    return query


def parse_query(text: str) -> Query:
    """Return the parameters of a query string. As in Go, pairs with a bad escape or a semicolon are left out."""
    if not text or text.count("&") >= _MOST_PARAMETERS:
        return NO_QUERY
    query = Query()
    if text.count("%") > FEW_ESCAPES and "\n" not in text and "\r" not in text:
        return _parse_escaped(text)
    query.pairs = pairs = []
    for part in text.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        if "%" in part or "+" in part:
            if has_bad_escape(key) or has_bad_escape(value):
                continue
            key, value = unescape_parameter(key), unescape_parameter(value)
        pairs.append((key, value))
        query.setdefault(key, value)
    return query


def _parse_escaped(text: str) -> Query:
    """Return the parameters of a query string with many escapes."""
    is_good = not has_bad_escape(text)
    parts = [part for part in text.split("&") if part and ";" not in part and (is_good or not has_bad_escape(part))]
    query = Query()
    query.pairs = parse_escaped_query("&".join(parts)) if parts else []
    for key, value in query.pairs:
        query.setdefault(key, value)
    return query


def first_parameter(text: str, name: str) -> str | None:
    """Return `parse_query(text).get(name)`, without unescaping the rest of a long query."""
    count = text.count("&")
    if count >= _MOST_PARAMETERS:
        return None
    longest = 3 * len(name)  # the length with every character escaped
    first = name[0]
    tried = 0
    is_split = len(text) < _LONG or count > _FEW_PARTS
    for part in text.split("&") if is_split else _possible_parts(text, name):
        if part[:1] != first and part[:1] != "%":
            continue
        key, _, value = part.partition("=")
        if len(key) - 2 * key.count("%") != len(name):
            continue
        tried += 1
        if tried > FEW_ESCAPES:
            return parse_query(text).get(name)
        if len(key) > longest or ";" in part or has_bad_escape(key) or unescape_parameter(key) != name:
            continue
        if not has_bad_escape(value):
            return unescape_parameter(value)
    return None


def _possible_parts(text: str, name: str) -> Iterator[str]:
    """Yield the parts of a query whose key may be `name`, without copying others."""
    start = 0
    while start < len(text):
        end = text.find("&", start)
        end = len(text) if end < 0 else end
        if text[start] in (name[0], "%"):
            sign = text.find("=", start, end)
            if len(name) <= (end if sign < 0 else sign) - start <= 3 * len(name):
                yield text[start:end]
        start = end + 1


def first_parameters(text: str, names: Iterable[str]) -> Query:
    """Return a query with at least these parameters of `text`, if present.

    Other parameters are left out if that is cheaper. In a query of many parts with many escapes any part may be one of
    the names, so that everything is parsed.
    """
    if text.count("&") > _FEW_PARTS and text.count("%") > FEW_ESCAPES:
        return parse_query(text)
    found = ((name, first_parameter(text, name)) for name in names)
    return query_of((name, value) for name, value in found if value is not None)


def unescape_parameter(text: str) -> str:
    """Return a key or a value of a query, unescaped; all its escapes must be valid."""
    return unescape(text.replace("+", " ") if "+" in text else text)


def checked_flag(name: str, text: str | None) -> bool:
    """Return the boolean parameter `name` of a path that kube-apiserver does not have. Raises StatusError 400."""
    found = _FLAGS.get(text or "")
    if found is None:
        raise bad_request(f"{name} must be true or false: {(text or '')[:_LONGEST_FLAG]!r}")
    return found


def truthy(text: str | None) -> bool:
    """Return a boolean parameter: False if it is absent, "0" or, in any case, "false"; otherwise True."""
    if text is None or text == "0" or text == "false":
        return False
    # Go's strings.EqualFold also equates U+017F with "s"
    return len(text) != len("false") or to_lower(text).replace("\u017f", "s") != "false"
