"""Rewriting of links in backends' answers to lead through this server: redirects, and attributes in HTML pages.

Follows k8s.io/apimachinery `util/proxy` (Transport). A start tag is written anew, as golang.org/x/net/html does;
everything else stays as it is.
"""

from __future__ import annotations

import asyncio
import codecs
import html
import re
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from time import monotonic
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit
from weakref import WeakValueDictionary

from steersman.endpoints.proxy.location import escaped_path, join_path
from steersman.machinery.errors.status import internal, plain_internal, service_unavailable
from steersman.machinery.go.strings import trim_space
from steersman.machinery.go.urls import url_error
from steersman.machinery.large_work.large_requests import check_backlog
from steersman.net.ascii import lower
from steersman.net.client.answer import Answer
from steersman.net.message import BodyAborted
from steersman.work.offloading import current, offload_if
from steersman.work.patterns import late_pattern

MAX_PAGE_BYTES: Final = 8 << 20
"""Limit of bytes of a page whose links are rewritten, before and after decompression; a larger one is refused."""

PAGES_OF_A_USER: Final = 4
"""Limit of concurrent pages of a user; further pages wait unread."""
ENCODINGS: Final = frozenset({"", "gzip", "deflate"})
"""Content encodings of pages that are rewritten."""
_in_hand: Final[WeakValueDictionary[tuple[int, str], asyncio.Semaphore]] = WeakValueDictionary()
_PIECE: Final = 64 << 10
_GZIP: Final = b"\x1f\x8b\x08"
_GZIP_HEAD: Final = 10
"""Bytes of the header of a gzip stream."""
_CORRUPT: Final = "flate: corrupt input before offset 1"
_ZLIB_ERRORS: Final = {
    "incorrect data check": "gzip: invalid checksum",
    "incorrect length check": "gzip: invalid checksum",
    "incorrect header check": "gzip: invalid header",
}
"""Go's error texts, by a part of zlib's."""
STEP: Final = 0.05
"""Seconds of work on a page before it yields the worker thread to others."""
_LINKS: Final[dict[str, tuple[str, ...]]] = {
    "a": ("href",),
    "applet": ("codebase",),
    "area": ("href",),
    "audio": ("src",),
    "base": ("href",),
    "blockquote": ("cite",),
    "body": ("background",),
    "button": ("formaction",),
    "command": ("icon",),
    "del": ("cite",),
    "embed": ("src",),
    "form": ("action",),
    "frame": ("longdesc", "src"),
    "head": ("profile",),
    "html": ("manifest",),
    "iframe": ("longdesc", "src"),
    "img": ("longdesc", "src", "usemap"),
    "input": ("src", "usemap", "formaction"),
    "ins": ("cite",),
    "link": ("href",),
    "object": ("classid", "codebase", "data", "usemap"),
    "q": ("cite",),
    "script": ("src",),
    "source": ("src",),
    "video": ("poster", "src"),
}
"""Attributes that hold URLs, by HTML element."""
_RAW: Final = frozenset(
    {"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp"}
)
"""Elements whose content has no markup except their end tag."""
_MARKUP: Final = late_pattern(r"<[/!?A-Za-z]")
_END_OF_NAME: Final = late_pattern(r"[ \n\r\t\f/>]")
_BEFORE_KEY: Final = late_pattern(r"[^ \n\r\t\f/]")
_END_OF_KEY: Final = late_pattern(r"[ \n\r\t\f/>=]")
_NO_BLANK: Final = late_pattern(r"[^ \n\r\t\f]")
_END_OF_BARE: Final = late_pattern(r"[ \n\r\t\f>]")
_TAG_END: Final = late_pattern(r"[ \n\r\t\f/]*>")
_ATTRIBUTE: Final = late_pattern(
    r"[ \n\r\t\f/]*(?P<key>[^ \n\r\t\f/>][^ \n\r\t\f/>=]*)"
    r"(?:[ \n\r\t\f]*=[ \n\r\t\f]*"
    r"(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>[^ \n\r\t\f>\"'][^ \n\r\t\f>]*))?)?"
)
SHORT: Final = 1024
"""Characters of an attribute that are parsed by one regular expression; a longer one is parsed in windows."""
_BATCH: Final = 4096
"""Number of pieces that are joined at once."""
WINDOW: Final = 32 << 10
"""Characters that one call of the standard library processes."""
_LONGEST_REFERENCE: Final = 64
"""Upper bound of the characters of a character reference, without the digits of a number."""
_LONGEST_LINK: Final = 64 << 10
"""Limit of characters of a link that is rewritten; a longer one stays as it is."""


class Rewriter:
    """Rewriter of links of one backend.

    `prefix` is the path under which this server exposes the backend at `backend` (host and port). `host` is the name by
    which the client reached this server. Rewritten URLs get `origin` (scheme, host), if given.
    """

    def __init__(self, prefix: str, backend: str, host: str, origin: tuple[str, str] | None = None) -> None:
        self.prefix = prefix
        self._origin = origin
        self._backend = backend
        self._host = host

    def url(self, text: str) -> str:
        """Return a URL of the backend rewritten to lead through this server; any other and a relative one stay as they
        are.
        """
        try:
            parts = urlsplit(text)
        except ValueError:
            return text
        if parts.netloc not in ("", self._backend, self._host) or not parts.path.startswith("/"):
            return text
        ours = parts.netloc and parts.netloc == self._host
        scheme, host = self._origin or ((parts.scheme, parts.netloc) if ours else ("", ""))
        path = unquote(parts.path, errors="surrogateescape") if "%" in parts.path else parts.path
        if path.startswith(self.prefix):
            path = parts.path
        else:
            path = escaped_path(join_path(self.prefix, path) + ("/" if path.endswith("/") else ""))
        return urlunsplit((scheme, host, path, parts.query, parts.fragment))

    def with_redirect(self, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the fields of an answer with Location rewritten. Raises StatusError 500 if it is no valid URL."""
        for name, value in headers:
            if name == "location" and value and (wrong := url_error(value)) is not None:
                raise internal(f"error trying to parse Location header: {wrong}")
        return [(name, self.url(value) if name == "location" and value else value) for name, value in headers]

    def is_page(self, headers: list[tuple[str, str]]) -> bool:
        """Return True if an answer is an HTML page and no redirect."""
        fields = dict(headers)
        return (
            not fields.get("location") and trim_space(fields.get("content-type", "").partition(";")[0]) == "text/html"
        )

    def tags(self, text: str, page: Pieces) -> Iterator[None]:
        """Append an HTML page with its links rewritten to `page`; yields before each start tag."""
        at = 0
        while (start := _next(_MARKUP, text, at, 1)) < len(text):
            page.add(text[at:start])
            kind = text[start + 1]
            if kind in "/!?":
                mark = "-->" if text.startswith("!--", start + 1) else ">"
                at = _behind(mark, text, start + (4 if len(mark) > 1 else 2))
                page.add(text[start:at])
                continue
            yield
            at, name = self._start_tag(text, start, page)
            if name in _RAW and at < len(text):
                end = _end_of_raw(text, at, name)
                page.add(text[at:end])
                at = end
        page.add(text[at:])

    def _start_tag(self, text: str, start: int, page: Pieces) -> tuple[int, str]:
        """Append a start tag, rewritten; return its end and its element. An unfinished tag is appended as it is."""
        at = _next(_END_OF_NAME, text, start + 1)
        name = _lowered(text[start + 1 : at])
        links = _LINKS.get(name, ())
        tag = Pieces()
        tag.add(f"<{name}")
        while at < len(text):
            stop = at + SHORT
            if (end := _TAG_END.match(text, at, stop)) is not None:
                tag.add("/>" if text[end.end() - 2] == "/" else ">")
                page.extend(tag)
                return end.end(), name
            match = _ATTRIBUTE.match(text, at, stop)
            if match is not None and (ends := match.end()) < stop and text[ends : ends + 1] not in ('"', "'"):
                at = ends
                key, value = lower(match["key"]), match["double"] or match["single"] or match["bare"] or ""
            else:
                at = _next(_BEFORE_KEY, text, at)
                if text[at : at + 1] in ("", ">"):
                    continue
                key, value, at = _attribute(text, at)
            value = _unescaped(value)
            if key in links and len(value) <= _LONGEST_LINK:
                value = self.url(value)
            tag.add(f' {key}="{_escaped(value)}"')
        page.add(text[start:])
        return len(text), ""


class Pieces:
    """Pieces of a text, joined in batches: a page may have millions."""

    def __init__(self) -> None:
        self._joined: list[str] = []
        self._latest: list[str] = []

    def add(self, piece: str) -> None:
        """Append a piece."""
        self._latest.append(piece)
        if len(self._latest) >= _BATCH:
            self._joined.append("".join(self._latest))
            self._latest.clear()

    def extend(self, other: Pieces) -> None:
        """Append the pieces of another text."""
        for piece in other.joined():
            self.add(piece)

    def joined(self) -> list[str]:
        """Return the text in a few long pieces."""
        return [*self._joined, *self._latest]


def _attribute(text: str, at: int) -> tuple[str, str, int]:
    """Return key, value and end of the attribute at `at`; the end is that of the text for an unfinished tag."""
    end = _next(_END_OF_KEY, text, at + 1)
    key = _lowered(text[at:end])
    at = _next(_NO_BLANK, text, end)
    if text[at : at + 1] != "=":
        return key, "", end
    at = _next(_NO_BLANK, text, at + 1)
    quote = text[at : at + 1]
    if quote and quote in "\"'":
        end = _behind(quote, text, at + 1)
        closed = end > at + 1 and text[end - 1] == quote
        return key, text[at + 1 : end - 1], end if closed else len(text)
    end = _next(_END_OF_BARE, text, at)
    return key, text[at:end], end


def _windows(text: str, at: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield windows of the text from `at` on, for a search of something that is at most `overlap` + 1 characters long.

    This runs in a thread. One call for the whole text would hold the GIL, and so block the event loop, for its
    duration.
    """
    while at < len(text):
        yield at, min(len(text), at + WINDOW + overlap)
        at += WINDOW


def _next(pattern: re.Pattern[str], text: str, at: int, overlap: int = 0) -> int:
    """Return the start of the next match of at most 1 + `overlap` characters, or the end of the text."""
    for start, end in _windows(text, at, overlap):
        if (match := pattern.search(text, start, end)) is not None:
            return match.start()
    return len(text)


def _behind(mark: str, text: str, at: int) -> int:
    """Return the position after the next `mark`, or the end of the text."""
    for start, end in _windows(text, at, len(mark) - 1):
        if (found := text.find(mark, start, end)) >= 0:
            return found + len(mark)
    return len(text)


def _lowered(text: str) -> str:
    """Return the text with ASCII letters in lower case, as HTML names are compared."""
    if len(text) <= WINDOW:
        return lower(text)
    return "".join(lower(text[start:end]) for start, end in _windows(text, 0, 0))


def _end_of_raw(text: str, at: int, name: str) -> int:
    if name == "plaintext":
        return len(text)
    pattern = re.compile(rf"</{name}[ \n\r\t\f/>]", re.IGNORECASE | re.ASCII)
    for start, end in _windows(text, at, len(name) + 3):
        if (match := pattern.search(text, start, end)) is not None:
            return match.start()
    return len(text)


REFERENCE: Final = late_pattern(r"&(?:#([0-9]++);?|#[xX]([0-9a-fA-F]++);?|[^\t\n\f <&#;]{1,32};?)", re.ASCII)
"""A character reference, decimal, hexadecimal or named."""
_DECIMALS: Final = 32
"""Trailing digits of a number that matter: it is reduced modulo 2^32, and 10^32 is a multiple of that."""
_HEX_DIGITS: Final = 8
_WINDOWS_1252: Final = bytes(range(0x80, 0xA0)).decode("cp1252", "surrogateescape")


def _meant(found: re.Match[str]) -> str:
    """Return the text of a character reference; numbers as in Go's html package, which computes in int32."""
    decimal, hexadecimal = found[1], found[2]
    if decimal is None and hexadecimal is None:
        return html.unescape(found[0])
    number = int(decimal[-_DECIMALS:]) if decimal is not None else int(hexadecimal[-_HEX_DIGITS:], 16)
    number &= 0xFFFFFFFF
    if 0x80 <= number <= 0x9F:
        replaced = _WINDOWS_1252[number - 0x80]
        return replaced if replaced < "\ud800" or replaced > "\udfff" else chr(number)
    if number == 0 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
        return "\ufffd"
    return chr(number)


def _unescaped(value: str) -> str:
    """Return a value with its character references resolved, window by window, each ending before a possible
    reference.
    """
    if len(value) <= WINDOW:
        return REFERENCE.sub(_meant, value) if "&" in value else value
    parts = []
    at = 0
    while at < len(value):
        end = at + WINDOW
        if end < len(value) and (cut := value.rfind("&", end - _LONGEST_REFERENCE, end)) > at:
            end = cut
        parts.append(REFERENCE.sub(_meant, value[at:end]))
        at = end
    return "".join(parts)


def _escaped(value: str) -> str:
    """Return a text as Go's html.EscapeString does."""
    if len(value) > WINDOW:
        return "".join(_escaped(value[at : at + WINDOW]) for at in range(0, len(value), WINDOW))
    return (
        value.replace("&", "&amp;")
        .replace("'", "&#39;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&#34;")
        .replace("\r", "&#13;")
    )


class PageBody:
    """A rewritten page, read like a backend's answer; it holds its permit to the end."""

    def __init__(self, data: bytes, permit: asyncio.Semaphore) -> None:
        self._data = data
        self._permit: asyncio.Semaphore | None = permit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the page in pieces. Raises BodyAborted."""
        for at in range(0, len(self._data), _PIECE):
            if self._permit is None:
                raise BodyAborted("the page is cut off")
            yield self._data[at : at + _PIECE]

    def cut_off(self) -> None:
        """End reading, and release the permit."""
        permit, self._permit = self._permit, None
        if permit is not None:
            permit.release()

    async def close(self) -> None:
        """Release the page."""
        self.cut_off()
        self._data = b""


def _permits_of(user: str) -> asyncio.Semaphore:
    """Return the semaphore for a user's pages in progress: each page is in memory as a whole, several times over."""
    key = (id(asyncio.get_running_loop()), user)
    permit = _in_hand.get(key)
    if permit is None:
        permit = _in_hand[key] = asyncio.Semaphore(PAGES_OF_A_USER)
    return permit


async def rewritten_page(rewriter: Rewriter, answer: Answer, encoding: str, user: str) -> tuple[PageBody, int]:
    """Return the rewritten page of an answer and its size in bytes; waits while the user has many pages in progress.

    Raises StatusError 429 if the worker threads have much work queued for the user, 500 for a page that is cut off or
    cannot be decompressed, and 503 for one that is too large.
    """
    permit = _permits_of(user)
    await permit.acquire()
    try:
        data = await _rewritten(rewriter, answer, encoding)
    except BaseException:
        permit.release()
        raise
    return PageBody(data, permit), len(data)


async def _rewritten(rewriter: Rewriter, answer: Answer, encoding: str) -> bytes:
    try:
        data = await answer.read(MAX_PAGE_BYTES + 1)
    except BodyAborted as error:
        raise plain_internal(str(error)) from None
    if len(data) > MAX_PAGE_BYTES:
        raise service_unavailable(f"error trying to reach service: a page of more than {MAX_PAGE_BYTES} bytes")
    check_backlog(current())
    text = await offload_if(True, page_text, data, encoding)
    del data
    page = Pieces()
    tags = rewriter.tags(text, page)
    while await offload_if(True, goes_on, tags):
        pass
    return await offload_if(True, page_body, page, encoding)


def goes_on(tags: Iterator[None]) -> bool:
    """Process some tags of a page; return True if there are more."""
    end = monotonic() + STEP
    return any(monotonic() > end for _ in tags)


def _window_of(encoding: str) -> int | None:
    return {"gzip": 16 + zlib.MAX_WBITS, "deflate": -zlib.MAX_WBITS}.get(encoding)


def page_text(data: bytes, encoding: str) -> str:
    """Return a page as text. Raises StatusError."""
    if encoding:
        data = _decompressed(data, encoding)
    return _decoded(data)


def _decompressed(data: bytes, encoding: str) -> bytes:
    """Return the decompressed data: all members of a gzip stream, or a flate stream. Raises StatusError."""
    if encoding == "gzip":
        beginning = data[: len(_GZIP)]
        if len(data) < _GZIP_HEAD:
            raise plain_internal(f"errorf making gzip reader: {'unexpected EOF' if data else 'EOF'}")
        if beginning != _GZIP:
            raise plain_internal("errorf making gzip reader: gzip: invalid header")
    window = _window_of(encoding)
    assert window is not None
    whole = bytearray()
    while True:
        reader = zlib.decompressobj(window)
        try:
            whole += reader.decompress(data, MAX_PAGE_BYTES + 1 - len(whole))
        except zlib.error as error:
            why = next((ours for theirs, ours in _ZLIB_ERRORS.items() if theirs in error.args[0]), _CORRUPT)
            raise plain_internal(why) from None
        if len(whole) > MAX_PAGE_BYTES:
            raise service_unavailable(f"error trying to reach service: a page of more than {MAX_PAGE_BYTES} bytes")
        if not reader.eof:
            raise plain_internal("unexpected EOF")
        data = reader.unused_data
        if encoding != "gzip" or not data:
            return bytes(whole)


def page_body(page: Pieces, encoding: str) -> bytes:
    """Return a page as the bytes of a body, compressed if `encoding` says so."""
    data = _encoded(page.joined())
    window = _window_of(encoding)
    if window is None:
        return data
    writer = zlib.compressobj(wbits=window)
    return writer.compress(data) + writer.flush()


def _decoded(data: bytes) -> str:
    """Return the bytes decoded as UTF-8, window by window; invalid bytes are preserved."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    parts = [decoder.decode(data[at : at + WINDOW]) for at in range(0, len(data), WINDOW)]
    return "".join([*parts, decoder.decode(b"", True)])


def _encoded(pieces: Iterable[str]) -> bytes:
    return b"".join(
        piece[start:end].encode("utf-8", "surrogateescape") for piece in pieces for start, end in _windows(piece, 0, 0)
    )
