"""The function `url("https://...")` and the parts of URLs (apiserver `cel/library` urls), parsed as by Go's net/url."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from steersman.cel.environment import Library, Overload
from steersman.cel.types import BOOL, STRING, list_of, map_of, object_type
from steersman.cel.values import EvaluationError, Extension, TextList
from steersman.machinery.go.urls import ESCAPE, Parts, UrlError, parse, parse_error_message, uri_error
from steersman.net.ascii import is_digits

URL: Final = object_type("kubernetes.URL")


class URLValue(Extension):
    """A URL."""

    __slots__ = ("parts", "text")
    cel_type = URL

    def __init__(self, text: str, parts: Parts) -> None:
        self.text: Final = text
        self.parts: Final = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URLValue) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


def read_url(text: str) -> URLValue:
    """Parse a URL. Raises EvaluationError."""
    wrong = uri_error(text)
    if wrong is None:
        plain = text.partition("#")[0]
        try:
            return URLValue(text, parse(plain, of_request=False))
        except UrlError as error:
            wrong = parse_error_message(text, error)
    raise EvaluationError(f"URL parse error during conversion from string: {wrong}")


def _hostname(value: URLValue) -> str:
    host = value.parts.host
    if host.startswith("["):
        return host[1 : host.index("]")]
    name, colon, port = host.rpartition(":")
    return name if colon and (not port or is_digits(port)) else host


def _port(value: URLValue) -> str:
    host = value.parts.host
    _, colon, port = host.rpartition("]")[2].rpartition(":")
    return port if colon else ""


_PATH_SAFE: Final = "/%-_.~$&+,:;=@!'()*"


def _escaped_path(value: URLValue) -> str:
    return quote(value.parts.path, safe=_PATH_SAFE)


def _query(value: URLValue) -> dict[str, TextList]:
    found: dict[str, TextList] = {}
    for pair in value.parts.query.split("&"):
        if not pair or ";" in pair:
            continue
        name, _, content = pair.partition("=")
        if ESCAPE.search(name) or ESCAPE.search(content):
            continue
        found.setdefault(_unescaped(name), TextList()).append(_unescaped(content))
    return found


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode(errors="replace")


def _part(id: str, call: Any) -> tuple[Overload, ...]:
    return (Overload(id, (URL,), STRING, call, member=True),)


URLS: Final = Library(
    functions={
        "url": (Overload("string_to_url", (STRING,), URL, read_url),),
        "getScheme": _part("url_get_scheme", lambda value: value.parts.scheme),
        "getHost": _part("url_get_host", lambda value: value.parts.host),
        "getHostname": _part("url_get_hostname", _hostname),
        "getPort": _part("url_get_port", _port),
        "getEscapedPath": _part("url_get_escaped_path", _escaped_path),
        "getQuery": (Overload("url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query, member=True),),
        "isURL": (Overload("is_url_string", (STRING,), BOOL, lambda text: uri_error(text) is None),),
    }
)
