"""URLs as Go's net/url parses them, with Go's messages for malformed ones."""

from __future__ import annotations

import binascii
import json
import os
import re
from ipaddress import IPv6Address
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes

from steersman.machinery.go.strings import to_lower
from steersman.work.patterns import late_pattern

_SCHEME: Final = late_pattern("([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_PORT: Final = late_pattern("(?::[0-9]*)?", re.ASCII)
ESCAPE: Final = late_pattern("%(?![0-9A-Fa-f]{2})")
"""A percent sign that is not followed by two hexadecimal digits."""
_SHORT: Final = 256
FEW_ESCAPES: Final = 64
_HEX_DIGITS: Final = bytes.maketrans(b"h0123456789abcdefABCDEF", b"." + b"h" * 22)
_ESCAPED: Final = late_pattern("%([0-9A-Fa-f]{2})")
_HOST_INVALID: Final = late_pattern(r"[\x00- #/?@\\^`{|}\x7f]")
_USER_INVALID: Final = late_pattern(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:%@]")
_LONGEST_ADDRESS: Final = 256
_PAIR: Final = os.urandom(16).hex().encode()
_VALUE: Final = os.urandom(16).hex().encode()
_CONTROL: Final = late_pattern("[\x00-\x1f\x7f]")


class UrlError(ValueError):
    """The error for text that is not a URL, with Go's message."""


class Parts(NamedTuple):
    """The parts of a URL; `host` includes the port."""

    scheme: str
    host: str
    path: str
    query: str


def parse(text: str, *, of_request: bool) -> Parts:
    """Parse a URL. Raises UrlError.

    With `of_request` the URL is that of an HTTP request line, which Go restricts to absolute URLs and paths.
    """
    if _CONTROL.search(text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and of_request:
        raise UrlError("empty url")
    if text == "*":
        return Parts("", "", "*", "")
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme, rest = (to_lower(match[1]), text[match.end() :]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Parts(scheme, "", "", query)
        if of_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    host = ""
    if (scheme or (not of_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        host = _host(scheme, authority)
    _check_escapes(rest)
    return Parts(scheme, host, rest, query)


def _check_escapes(text: str) -> None:
    match = ESCAPE.search(text)
    if match is not None:
        raise UrlError(f"invalid URL escape {json.dumps(text[match.start() : match.start() + 3])}")


def _check_host_escapes(host: str, *, has_zone: bool) -> None:
    """Raise UrlError for an escape that Go does not allow in a host.

    Escapes of ASCII characters are not allowed, except for the percent sign (`%25`). The zone of an IPv6 address may
    have escapes of the ASCII characters that a host allows, and of the space.
    """
    _check_escapes(host)
    end = host.rfind("]") if has_zone else 0
    zone = host.find("%25", 0, end)
    for found in _ESCAPED.finditer(host):
        in_zone = 0 <= zone < found.start() < end
        code = int(found[1], 16)
        if found[0] == "%25" or (code >= 0x80 and not in_zone):
            continue
        if not in_zone or code >= 0x80 or (code != 0x20 and _HOST_INVALID.search(chr(code))):
            raise UrlError(f"invalid URL escape {json.dumps(found[0])}")


def _host(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at:
        if _USER_INVALID.search(user):
            raise UrlError("net/url: invalid userinfo")
        _check_escapes(user)
    port = ""
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        end = host.rfind("]")
        if end < 0:
            raise UrlError("missing ']' in host")
        port = host[end + 1 :]
    elif ":" in host:
        first = host.index(":") if scheme in ("http", "https") else host.rindex(":")
        port = host[first:]
    if not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {json.dumps(port)} after host")
    wrong = _HOST_INVALID.search(host)
    if wrong is not None:
        raise UrlError(f"invalid character {json.dumps(wrong[0])} in host name")
    _check_host_escapes(host, has_zone=bracket == 0)
    if bracket == 0:
        address, percent, zone = host[1 : host.rfind("]")].partition("%25")
        if not _is_ipv6(address) or (percent and not zone):
            raise UrlError("invalid IP-literal")
    return unquote_to_bytes(host).decode(errors="replace") if "%" in host else host


def _is_ipv6(text: str) -> bool:
    if len(text) > _LONGEST_ADDRESS:
        return False
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def parse_error_message(text: str, error: UrlError) -> str:
    """Return the message of Go's url.Error for `text`."""
    return f"parse {json.dumps(text, ensure_ascii=False)}: {error}"


def uri_error(text: str) -> str | None:
    """Return Go's message for a malformed URI of a request; None if the URI is good."""
    try:
        parse(text, of_request=True)
    except UrlError as error:
        return parse_error_message(text, error)
    return None


def url_error(text: str) -> str | None:
    """Return Go's message for a malformed URL, which may be relative and have a fragment; None if the URL is good."""
    plain, _, fragment = text.partition("#")
    try:
        parse(plain, of_request=False)
        _check_escapes(fragment)
    except UrlError as error:
        return parse_error_message(text, error)
    return None


class Reference(NamedTuple):
    """The parts of a URL that may be relative; `user` is None if the URL has no user information."""

    scheme: str
    user: str | None
    host: str
    path: str
    query: str
    fragment: str


def parse_reference(text: str) -> Reference:
    """Parse a URL into the parts of Go's url.URL. Raises UrlError.

    The user information is escaped as Go prints it.
    """
    plain, _, fragment = text.partition("#")
    scheme, host, path, query = parse(plain, of_request=False)
    _check_escapes(fragment)
    user = None
    if host or path:
        user = _user(plain, scheme)
    return Reference(scheme, user, host, path, query, unquote_to_bytes(fragment).decode(errors="replace"))


def _user(text: str, scheme: str) -> str | None:
    """Return the user information of a URL, escaped as Go prints it; None without one."""
    rest = text[len(scheme) + 1 :] if scheme else text
    if not rest.startswith("//"):
        return None
    user, at, _ = rest[2:].partition("?")[0].partition("/")[0].rpartition("@")
    if not at:
        return None
    name, colon, password = user.partition(":")
    return _escape_user(name) + colon + _escape_user(password)


def _escape_user(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="$&+,;=")


def unescape_path(text: str) -> str:
    """Return `text` percent-decoded (Go's url.PathUnescape), or unchanged if it has a malformed escape."""
    return text if has_bad_escape(text) else unescape(text)


def has_bad_escape(text: str) -> bool:
    """Return True if a percent sign in `text` is not followed by two hexadecimal digits."""
    if len(text) < _SHORT:
        return ESCAPE.search(text) is not None
    raw = text.encode("utf-8", "surrogatepass")  # counting bytes is 50 times as fast as a regular expression
    return raw.translate(_HEX_DIGITS).count(b"%hh") != raw.count(b"%")


def parse_escaped_query(text: str) -> list[tuple[str, str]]:
    """Return the pairs of key and value of a query, percent-decoded in one call.

    Every escape in `text` must be well-formed. The separators are replaced by random bytes while the query is decoded,
    so that a decoded escape cannot be taken for one.
    """
    data = text.replace("+", " ").encode("utf-8", "replace")
    data = data.replace(b"&", _PAIR).replace(b"=", _VALUE).replace(b"%", b"=")
    pairs = []
    for part in binascii.a2b_qp(data).split(_PAIR):
        key, _, value = part.partition(_VALUE)
        pairs.append((key.decode("utf-8", "replace"), value.replace(_VALUE, b"=").decode("utf-8", "replace")))
    return pairs


def unescape(text: str) -> str:
    """Percent-decode `text`. A malformed escape stays as it is."""
    if "%" not in text:
        return text
    if text.count("%") <= FEW_ESCAPES or not text.isascii() or has_bad_escape(text) or "\n" in text or "\r" in text:
        return unquote(text)
    # A C function for the quoted-printable encoding, which has "=41" for "%41". urllib takes 100 ns for each escape.
    return binascii.a2b_qp(text.replace("=", "=3D").replace("%", "=")).decode("utf-8", "replace")


def redacted_url(text: str) -> str:
    """Return a URL as it may be logged: without query and fragment, and with `***` for a password.

    Query and fragment may hold keys and tokens. Text that is not a URL is treated in the same way.
    """
    whole = text.partition("#")[0].partition("?")[0]
    scheme, separator, rest = whole.partition("://") if "://" in whole else ("", "", whole)
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    name, colon, _ = user.partition(":")
    return f"{scheme}{separator}{name}{':***' if colon else ''}{at}{host}{slash}{path}"
