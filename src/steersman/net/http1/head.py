"""The head of an HTTP/1 message (RFC 9112), parsed as Go's net/http and net/textproto parse it.

Everything that Go accepts is accepted (lines that end in LF alone, folded values, absolute targets, HTTP/1.2).
Everything that Go refuses is refused with the same status line and text.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from steersman.net.ascii import is_digits, lower
from steersman.net.http2.request import LONGEST_KNOWN_NAME, is_well_escaped, text_of
from steersman.net.message import Headers
from steersman.work.patterns import late_pattern

END_OF_HEAD: Final = late_pattern(rb"\n\r?\n")
"""The end of a head that does not begin with an empty line."""
_FOLDED: Final = late_pattern(rb"\n[ \t]")
_BAD_IN_VALUE: Final = late_pattern(r"[\x00-\x08\x0a-\x1f\x7f]")
_NAME: Final = late_pattern(rb"[!#$%&'*+.^_`|~0-9A-Za-z -]+")
_METHOD: Final = late_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VERSION: Final = late_pattern(r"HTTP/([0-9])\.([0-9])")
_HOST: Final = late_pattern(r"[0-9A-Za-z!$%&'()*+,\-.:;=\[\]_~]*")
_CONTROL: Final = late_pattern(r"[\x00-\x1f\x7f]")
_ESCAPES: Final = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_SCHEME: Final = late_pattern(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORT: Final = late_pattern(r"(:[0-9]*)?")
_PLAIN_HOST: Final = late_pattern(r"[A-Za-z0-9.:\-\[\]]*")
_AUTHORITY_HOST: Final = late_pattern(r"(?:[!\"$&'()*+,\-.0-9:;<=>A-Z\[\]_a-z~]|%25|%[89A-Fa-f][0-9A-Fa-f])*")
_USERINFO: Final = late_pattern(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_LENGTH_LINE: Final = late_pattern(
    rb"\n[Cc][Oo][Nn][Tt][Ee][Nn][Tt]-[Ll][Ee][Nn][Gg][Tt][Hh]: ([0-9]{1,18})\r\n(?![ \t])"
)
"""Without IGNORECASE, so that only ends of lines are looked at."""
_LONGEST_KEPT: Final = 4096
"""Limit of a block of fields, in bytes, that a connection caches from one request to the next."""
_LONGEST_LIST: Final = 8192
_LONGEST_LENGTH: Final = 1 << 63
_LONGEST_INITIAL_LINE: Final = 80
_NOT_IN_TRAILERS: Final = frozenset({"transfer-encoding", "trailer", "content-length"})


class MalformedFields(Exception):
    """Malformed header fields; the text is Go's.

    The text quotes `line` only when it is formatted: the line may be long, and clients never see the text for a
    request.
    """

    def __init__(self, why: str, line: bytes | None = None) -> None:
        super().__init__(why)
        self._line = line

    def __str__(self) -> str:
        why = super().__str__()
        return why if self._line is None else f"{why}: {quoted(self._line)}"


class Fault(Exception):
    """A request that is refused: code and words of the `status` line, and the text of the body."""

    def __init__(self, status: str, text: str = "") -> None:
        super().__init__(text or status)
        self.status = status
        self.text = text or status


def bad_request() -> Fault:
    """Return Go's answer to most malformed requests: 400."""
    return Fault("400 Bad Request")


def too_large() -> Fault:
    """Return the refusal of a head over a limit: 431."""
    return Fault("431 Request Header Fields Too Large")


class RequestFields(Struct, frozen=True):
    """The parsed header fields of a request. `length` is the body's length, None for a chunked body."""

    headers: Headers
    length: int | None
    keep_alive: bool
    upgradable: bool
    expects_continue: bool
    expects_other: bool
    host: str | None
    fault: Fault | None
    """A refusal that applies only after the version has been checked."""


class RequestHead(Struct):
    """The head of a request. `path` is percent-encoded; `target` is as sent, for example "*"."""

    method: str
    target: str
    path: str
    query: str
    host: str
    version: str
    fields: RequestFields
    headers: Headers
    """The request's own, which may be changed."""


class HeadReader:
    """Parser of the heads of one connection, with a cache: most requests differ only in their first line."""

    __slots__ = ("_block", "_fields", "_max_count", "_version")

    def __init__(self, max_count: int) -> None:
        self._max_count = max_count
        self._block = b""
        self._version = ""
        self._fields: RequestFields | None = None

    def read(self, raw: bytes) -> RequestHead:
        """Parse the head in `raw`, which includes the empty line at its end. Raises Fault."""
        end = raw.find(b"\n")
        first = raw[:end].removesuffix(b"\r")
        method, target, major, version = request_line(first)
        host, path, query = split_target(target, method)
        fields = self._fields_of(raw[end + 1 :], version)
        if major != 1 and not (method == "PRI" and target == "*" and first.endswith(b"HTTP/2.0")):
            raise _with_words("505 HTTP Version Not Supported", "unsupported protocol version")
        if fields.host is None and version == "1.1" and method not in ("CONNECT", "PRI"):
            raise _with_words("400 Bad Request", "missing required Host header")
        if fields.fault is not None:
            raise fields.fault
        headers = fields.headers
        if fields is self._fields:
            headers = Headers(headers)
            headers.sent = fields.headers.sent
        return RequestHead(method, target, path, query, host or fields.host or "", version, fields, headers)

    def _fields_of(self, block: bytes, version: str) -> RequestFields:
        """Return the parsed fields. Content-Length, which varies most, is removed before the cache lookup."""
        match = _LENGTH_LINE.search(block)
        if match is None or len(block) > _LONGEST_KEPT:
            return self._known_fields(block, version)
        fields = self._known_fields(block[: match.start() + 1] + block[match.end() :], version)
        headers = fields.headers
        if fields.length != 0 or "content-length" in headers:
            return request_fields(block, version, self._max_count)
        length = match[1].decode("ascii")
        headers = Headers(headers)
        headers["content-length"] = length
        headers.sent = (*fields.headers.sent, ("content-length", length))
        return replace(fields, headers=headers, length=int(length))

    def _known_fields(self, block: bytes, version: str) -> RequestFields:
        fields = self._fields
        if fields is None or block != self._block or version != self._version:
            fields = request_fields(block, version, self._max_count)
            if len(block) <= _LONGEST_KEPT:
                self._block, self._version, self._fields = block, version, fields
        return fields


def _with_words(status: str, words: str) -> Fault:
    return Fault(f"{status}: {words}")


def request_line(line: bytes) -> tuple[str, str, int, str]:
    """Return method, target, major version, and "1.0" or "1.1" as the version of the answer. Raises Fault."""
    parts = line.split(b" ", 2)
    if len(parts) != 3:
        raise bad_request()
    raw_method, raw_target, raw_version = parts
    if not raw_target.isascii():
        raw_target = _with_escapes(raw_target)
    method, target = raw_method.decode("latin-1"), raw_target.decode("ascii")
    if not _METHOD.fullmatch(method):
        raise bad_request()
    if raw_version == b"HTTP/1.1":
        return method, target, 1, "1.1"
    version = _VERSION.fullmatch(raw_version.decode("latin-1"))
    if version is None:
        raise bad_request()
    major, minor = int(version[1]), int(version[2])
    return method, target, major, "1.0" if (major, minor) < (1, 1) else "1.1"


_BEFORE_ESCAPES: Final = bytes.maketrans(b"x\\\0\1", b"\0\1\2\2")
_AFTER_ESCAPES: Final = bytes.maketrans(b"\\\0", b"%x")


def _with_escapes(raw: bytes) -> bytes:
    r"""Return a target with percent escapes for backslashes and for bytes that are not ASCII; the meaning is the same.

    The codec `backslashreplace` writes `\xff` much faster than other code writes `%ff`. Control characters temporarily
    replace each x and each backslash of the target. Control characters in the target itself, which are not allowed,
    become another control character.
    """
    marked = raw.translate(_BEFORE_ESCAPES).decode("latin-1").encode("ascii", "backslashreplace")
    return marked.translate(_AFTER_ESCAPES, b"x").replace(b"\1", b"%5C")


def split_target(target: str, method: str) -> tuple[str, str, str]:
    """Return host, path and query of a request target, as Go's url.ParseRequestURI parses it; "" for a missing part.

    Raises Fault.
    """
    if not target.isprintable() and _CONTROL.search(target):
        raise bad_request()
    scheme = ""
    rest = target
    if not target.startswith("/"):
        if target == "*":
            return "", "*", ""
        if method == "CONNECT":
            rest = target = f"http://{target}"
        match = _SCHEME.match(target)
        if match is None:
            raise bad_request()
        scheme, rest = lower(match[1]), target[match.end() :]
    path, _, query = rest.partition("?")
    if not path.startswith("/"):
        return "", "", query
    host = ""
    if scheme and path.startswith("//"):
        authority, slash, path = path[2:].partition("/")
        host = _host_of(authority, scheme)
        path = slash + path
    if "%" in path and not is_well_escaped(path):
        raise bad_request()
    return host, path, query


def _host_of(authority: str, scheme: str) -> str:
    """Return the host and port of a URL's authority. Raises Fault."""
    user, _, host = authority.rpartition("@")
    if not _USERINFO.fullmatch(user) or not is_well_escaped(user):
        raise bad_request()
    if host.startswith("["):
        address, bracket, port = host[1:].rpartition("]")
        if not bracket or "[" in address or not _is_ipv6(address):
            raise bad_request()
    else:
        name, colon, port = host.partition(":") if scheme in ("http", "https") else host.rpartition(":")
        port = colon + port if colon else ""
        if "[" in host or (not colon and "]" in name):
            raise bad_request()
    if not _PORT.fullmatch(port):
        raise bad_request()
    if not _PLAIN_HOST.fullmatch(host) and (len(host) > _LONGEST_LIST or not _AUTHORITY_HOST.fullmatch(host)):
        raise bad_request()
    return host


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text.replace("%25", "%", 1))
    except ValueError:
        return False
    return True


# Fields


def _lower_name(raw: bytes) -> str:
    """Return a field name in lower case, or "" for a name that Go's reader refuses; spaces are checked later."""
    return raw.lower().decode("ascii") if _NAME.fullmatch(raw) else ""


_field_name = lru_cache(maxsize=1024)(_lower_name)


def read_fields(block: bytes, max_count: int) -> list[tuple[str, str]]:
    """Return the fields in `block`, which ends with an empty line, in order: names in lower case, values trimmed.

    Raises MalformedFields, and Fault 431 for more than `max_count` fields.
    """
    count = block.count(b"\n")
    if count > max_count + 1:
        raise too_large()
    if block[:1] in (b" ", b"\t"):
        first = block.partition(b"\n")[0].removesuffix(b"\r")
        if len(first) > _LONGEST_INITIAL_LINE:
            raise MalformedFields("message too large")
        raise MalformedFields("malformed MIME header initial line", first)
    lines, trimmed = block.split(b"\r\n"), bytes.strip
    if len(lines) != count + 1 or _FOLDED.search(block):
        lines, trimmed = _unfolded(block), bytes.lstrip
    fields: list[tuple[str, str]] = []
    for line in lines:
        if not line:
            break
        raw_name, colon, raw_value = line.partition(b":")
        if not colon:
            raise MalformedFields("malformed MIME header: missing colon", line)
        name = _field_name(raw_name) if len(raw_name) <= LONGEST_KNOWN_NAME else _lower_name(raw_name)
        value = text_of(trimmed(raw_value, b" \t"))
        if not name or (not value.isprintable() and _BAD_IN_VALUE.search(value)):
            raise MalformedFields("malformed MIME header line", trimmed(line, b" \t"))
        fields.append((name, value))
    return fields


def _unfolded(block: bytes) -> list[bytes]:
    """Return the lines of a block that has lines ending in LF alone or continuation lines.

    A line without a colon gets no continuation, which must not provide the colon. Each part is trimmed before the parts
    are joined, so that an empty continuation leaves a space at the end, as in Go.
    """
    lines: list[list[bytes]] = []
    for line in block.split(b"\n"):
        line = line.removesuffix(b"\r")
        if not line:
            break
        if line[:1] in (b" ", b"\t"):
            if b":" in lines[-1][0]:
                lines[-1].append(line.strip(b" \t"))
        else:
            lines.append([line.strip(b" \t") if b":" in line else line])
    return [b" ".join(parts) for parts in lines]


def end_of_fields(data: bytes | bytearray, at: int) -> int:
    """Return the end of the fields that begin at `at`: the position after their empty line, which `data` must
    contain.
    """
    if data[at : at + 1] == b"\n":
        return at + 1
    if data[at : at + 2] == b"\r\n":
        return at + 2
    match = END_OF_HEAD.search(data, at)
    assert match is not None
    return match.end()


_FEW: Final = 16


_NO_UTF8: Final = range(0xDC80, 0xDD00)
"""Characters for bytes from 0x80 on that are not UTF-8 (PEP 383); this codec is fast."""


def quoted(raw: bytes) -> str:
    """Return `raw` as Go's %q prints it."""
    shown = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').decode("utf-8", "surrogateescape")
    if not shown.isprintable():
        special = [char for char in set(shown) if not char.isprintable()]
        if len(special) > _FEW:
            shown = shown.translate({ord(char): _escaped(ord(char)) for char in special})
        else:  # one pass over the text per special character is cheaper than a check of each character
            for char in special:
                shown = shown.replace(char, _escaped(ord(char)))
    return f'"{shown}"'


def _escaped(code: int) -> str:
    if code in _NO_UTF8:
        return f"\\x{code - _NO_UTF8.start + 0x80:02x}"
    if code < 0x80:
        return _ESCAPES.get(code) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def tokens(values: list[str]) -> set[str]:
    """Return the elements of a list field, in lower case; of a very long value, only the first ones."""
    return {lower(each.strip(" \t")) for value in values for each in value[:_LONGEST_LIST].split(",")}


def request_fields(block: bytes, version: str, max_count: int) -> RequestFields:
    """Parse the fields of a request. Raises Fault."""
    try:
        pairs = read_fields(block, max_count)
    except MalformedFields:
        raise bad_request() from None
    headers = Headers.from_pairs(pairs)
    host = headers.pop("host", None)
    if host is not None and len(headers) + 1 != len(pairs) and sum(name == "host" for name, _ in pairs) > 1:
        raise bad_request()
    length = _body_length(headers, version)
    listed = tokens(headers.get_all("connection")) if "connection" in headers else set()
    close = "close" in listed
    expect = headers.get_all("expect") if "expect" in headers else []
    expects_continue = bool(expect) and "100-continue" in tokens(expect[:1])
    headers.sent = tuple(field for field in headers.sent if field[0] in headers)
    return RequestFields(
        headers=headers,
        length=length,
        keep_alive=not close and (version == "1.1" or "keep-alive" in listed),
        upgradable=version == "1.1" and "upgrade" in listed and "upgrade" in headers,
        expects_continue=expects_continue and version == "1.1",
        expects_other=bool(expect and expect[0]) and not expects_continue,
        host=host,
        fault=_late_fault(headers, host),
    )


def _late_fault(headers: Headers, host: str | None) -> Fault | None:
    if host and not _HOST.fullmatch(host):
        return _with_words("400 Bad Request", "malformed Host header")
    if " " in "".join(headers):
        return _with_words("400 Bad Request", "invalid header name")
    return None


def _body_length(headers: Headers, version: str) -> int | None:
    """Return the length of a request's body, None for a chunked one; remove fields without effect. Raises Fault."""
    chunked = False
    if "transfer-encoding" in headers:
        codings = headers.get_all("transfer-encoding")
        if version == "1.0":
            del headers["transfer-encoding"]
        elif len(codings) > 1 or lower(codings[0]) != "chunked":
            raise Fault("501 Not Implemented", "Unsupported transfer encoding")
        else:
            chunked = True
    length = 0
    if "content-length" in headers:
        lengths = headers.get_all("content-length")
        length = content_length(lengths)
        if len(lengths) > 1:
            headers.replace("content-length", lengths[0].strip(" \t"))
    if not chunked:
        return length
    headers.pop("content-length", None)
    if tokens(headers.get_all("trailer")) & _NOT_IN_TRAILERS:
        raise bad_request()
    headers.pop("trailer", None)
    return None


def content_length(values: list[str]) -> int:
    """Return the value of Content-Length fields. Raises Fault for a malformed number and for different numbers."""
    text = values[0].strip(" \t")
    if any(each.strip(" \t") != text for each in values) or not is_digits(text):
        raise bad_request()
    number = int(text) if len(text) < 40 else int(text.lstrip("0")[:40] or "0")
    if number >= _LONGEST_LENGTH:
        raise bad_request()
    return number
