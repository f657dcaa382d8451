"""`url("https://...")` and its parts (apiserver `cel/library` urls), read as Go's net/url does."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from steersman.machinery.cel.environment import Library, Overload
from steersman.machinery.cel.library.addresses import is_ip_literal
from steersman.machinery.cel.types import BOOL, STRING, list_of, map_of, object_type
from steersman.machinery.cel.values import EvaluationError, Extension
from steersman.machinery.go_strings import to_lower
from steersman.net.ascii import is_digits

URL: Final = object_type("kubernetes.URL")

_SCHEME: Final = re.compile("([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_PORT: Final = re.compile("(?::[0-9]*)?", re.ASCII)
_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_HOST_INVALID: Final = re.compile(r"""[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>"%\x80-\U0010ffff]""")
_USER_INVALID: Final = re.compile(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:%@]")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")


class _UrlError(ValueError):
    """The text is no URL; the message is Go's."""


class _Parts(NamedTuple):
    scheme: str
    host: str
    path: str
    query: str


class URLValue(Extension):
    """A URL."""

    __slots__ = ("parts", "text")
    cel_type = URL

    def __init__(self, text: str, parts: _Parts) -> None:
        self.text: Final = text
        self.parts: Final = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URLValue) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


def _parse(text: str, *, of_request: bool) -> _Parts:
    """Raises _UrlError."""
    if _CONTROL.search(text):
        raise _UrlError("net/url: invalid control character in URL")
    if not text and of_request:
        raise _UrlError("empty url")
    if text == "*":
        return _Parts("", "", "*", "")
    if text.startswith(":"):
        raise _UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme, rest = (to_lower(match[1]), text[match.end() :]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return _Parts(scheme, "", "", query)
        if of_request:
            raise _UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _UrlError("first path segment in URL cannot contain colon")
    host = ""
    if (scheme or (not of_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        host = _host(scheme, authority)
    _check_escapes(rest)
    return _Parts(scheme, host, rest, query)


def _check_escapes(text: str) -> None:
    found = _ESCAPE.search(text)
    if found is not None:
        raise _UrlError(f"invalid URL escape {json.dumps(text[found.start() : found.start() + 3])}")


def _host(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at:
        if _USER_INVALID.search(user):
            raise _UrlError("net/url: invalid userinfo")
        _check_escapes(user)
    port = ""
    bracket = host.rfind("[")
    if bracket > 0:
        raise _UrlError("invalid IP-literal")
    if bracket == 0:
        end = host.rfind("]")
        if end < 0:
            raise _UrlError("missing ']' in host")
        port = host[end + 1 :]
    elif ":" in host:
        first = host.index(":") if scheme in ("http", "https") else host.rindex(":")
        port = host[first:]
    if not _PORT.fullmatch(port):
        raise _UrlError(f"invalid port {json.dumps(port)} after host")
    wrong = _HOST_INVALID.search(host)
    if wrong is not None:
        raise _UrlError(f"invalid character {json.dumps(wrong[0])} in host name")
    _check_escapes(host)
    if bracket == 0 and not is_ip_literal(host[1 : host.rfind("]")].replace("%25", "%")):
        raise _UrlError("invalid IP-literal")
    return unquote_to_bytes(host).decode(errors="replace") if "%" in host else host


def _failed(text: str, error: _UrlError) -> str:
    return f"parse {json.dumps(text, ensure_ascii=False)}: {error}"


def uri_error(text: str) -> str | None:
    """What is wrong with the URI of a request, in Go's words."""
    try:
        _parse(text, of_request=True)
    except _UrlError as error:
        return _failed(text, error)
    return None


def url_error(text: str) -> str | None:
    """What is wrong with a URL, which may be relative and have a fragment, in Go's words."""
    plain, _, fragment = text.partition("#")
    try:
        _parse(plain, of_request=False)
        _check_escapes(fragment)
    except _UrlError as error:
        return _failed(text, error)
    return None


def _url(text: str) -> URLValue:
    wrong = uri_error(text)
    if wrong is None:
        plain = text.partition("#")[0]
        try:
            return URLValue(text, _parse(plain, of_request=False))
        except _UrlError as error:
            wrong = _failed(text, error)
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


def _query(value: URLValue) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in value.parts.query.split("&"):
        if not pair or ";" in pair:
            continue
        name, _, content = pair.partition("=")
        if _ESCAPE.search(name) or _ESCAPE.search(content):
            continue
        found.setdefault(_unescaped(name), []).append(_unescaped(content))
    return found


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode(errors="replace")


def _part(id: str, call: Any) -> tuple[Overload, ...]:
    return (Overload(id, (URL,), STRING, call, member=True),)


URLS: Final = Library(
    functions={
        "url": (Overload("string_to_url", (STRING,), URL, _url),),
        "getScheme": _part("url_get_scheme", lambda value: value.parts.scheme),
        "getHost": _part("url_get_host", lambda value: value.parts.host),
        "getHostname": _part("url_get_hostname", _hostname),
        "getPort": _part("url_get_port", _port),
        "getEscapedPath": _part("url_get_escaped_path", _escaped_path),
        "getQuery": (Overload("url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query, member=True),),
        "isURL": (Overload("is_url_string", (STRING,), BOOL, lambda text: uri_error(text) is None),),
    }
)
