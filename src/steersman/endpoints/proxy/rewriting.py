"""Links in what a backend answers, made to lead through this server: redirects, and attributes in HTML pages.

Follows k8s.io/apimachinery `util/proxy` (Transport). A start tag is written anew, as golang.org/x/net/html does, and
everything else is left as it came.
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

MAX_PAGE_BYTES: Final = 8 << 20
"""Of a page whose links are rewritten, also once it is decompressed; a larger one is refused."""

PAGES_OF_A_USER: Final = 4
"""Pages that are in hand at once; more wait, and are not read meanwhile."""
ENCODINGS: Final = frozenset({"", "gzip", "deflate"})
"""Those of pages that are rewritten."""
_in_hand: Final[WeakValueDictionary[tuple[int, str], asyncio.Semaphore]] = WeakValueDictionary()
_PIECE: Final = 64 << 10
_GZIP: Final = b"\x1f\x8b\x08"
_GZIP_HEAD: Final = 10
"""Bytes of the head of a gzip stream."""
_CORRUPT: Final = "flate: corrupt input before offset 1"
_ZLIB_ERRORS: Final = {
    "incorrect data check": "gzip: invalid checksum",
    "incorrect length check": "gzip: invalid checksum",
    "incorrect header check": "gzip: invalid header",
}
"""Go's words, by a part of zlib's."""
_STEP: Final = 0.05
"""Seconds that a page is worked on before others have their turn in the worker threads."""
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
"""The attributes of HTML elements that hold a URL."""
_RAW: Final = frozenset(
    {"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp"}
)
"""Elements in which nothing but their end is markup."""
_MARKUP: Final = re.compile(r"<[/!?A-Za-z]")
_END_OF_NAME: Final = re.compile(r"[ \n\r\t\f/>]")
_BEFORE_KEY: Final = re.compile(r"[^ \n\r\t\f/]")
_END_OF_KEY: Final = re.compile(r"[ \n\r\t\f/>=]")
_NO_BLANK: Final = re.compile(r"[^ \n\r\t\f]")
_END_OF_BARE: Final = re.compile(r"[ \n\r\t\f>]")
_TAG_END: Final = re.compile(r"[ \n\r\t\f/]*>")
_ATTRIBUTE: Final = re.compile(
    r"[ \n\r\t\f/]*(?P<key>[^ \n\r\t\f/>][^ \n\r\t\f/>=]*)"
    r"(?:[ \n\r\t\f]*=[ \n\r\t\f]*"
    r"(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>[^ \n\r\t\f>\"'][^ \n\r\t\f>]*))?)?"
)
_SHORT: Final = 1024
"""Characters of an attribute that is read at once; a longer one is read a part at a time."""
_BATCH: Final = 4096
"""Pieces that are joined at once."""
_WINDOW: Final = 32 << 10
"""Characters that one call of the standard library looks at."""
_LONGEST_REFERENCE: Final = 64
"""More characters than a character reference has, but for the digits of a number."""
_LONGEST_LINK: Final = 64 << 10
"""Characters of a link that is rewritten; a longer one is left as it is."""


class Rewriter:
    """`prefix` is the path under which this server shows the backend at `backend` (host and port); `host` is the name
    by which the client reached this server. URLs are written with `origin`, scheme and host, if there is one."""

    def __init__(self, prefix: str, backend: str, host: str, origin: tuple[str, str] | None = None) -> None:
        self.prefix = prefix
        self._origin = origin
        self._backend = backend
        self._host = host

    def url(self, text: str) -> str:
        """A URL of the backend as it is reached through this server; any other, and what is relative, as it is."""
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
        """The fields of an answer with the Location field rewritten. Raises StatusError 500 if that is no URL."""
        for name, value in headers:
            if name == "location" and value and (wrong := url_error(value)) is not None:
                raise internal(f"error trying to parse Location header: {wrong}")
        return [(name, self.url(value) if name == "location" and value else value) for name, value in headers]

    def is_page(self, headers: list[tuple[str, str]]) -> bool:
        """Whether an answer is an HTML page, and no redirect."""
        fields = dict(headers)
        return (
            not fields.get("location") and trim_space(fields.get("content-type", "").partition(";")[0]) == "text/html"
        )

    def tags(self, text: str, page: _Pieces) -> Iterator[None]:
        """Adds an HTML page with its links rewritten to `page`, a tag at a time."""
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

    def _start_tag(self, text: str, start: int, page: _Pieces) -> tuple[int, str]:
        """Where the tag ends, and its element; adds the tag anew, or as it is if it never ends."""
        at = _next(_END_OF_NAME, text, start + 1)
        name = _lowered(text[start + 1 : at])
        links = _LINKS.get(name, ())
        tag = _Pieces()
        tag.add(f"<{name}")
        while at < len(text):
            stop = at + _SHORT
            if (end := _TAG_END.match(text, at, stop)) is not None:
                tag.add("/>" if text[end.end() - 2] == "/" else ">")
                page.extend(tag)
                return end.end(), name
            found = _ATTRIBUTE.match(text, at, stop)
            if found is not None and (ends := found.end()) < stop and text[ends : ends + 1] not in ('"', "'"):
                at = ends
                key, value = lower(found["key"]), found["double"] or found["single"] or found["bare"] or ""
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


class _Pieces:
    """Pieces of a text, joined some at a time: a page may have millions."""

    def __init__(self) -> None:
        self._joined: list[str] = []
        self._latest: list[str] = []

    def add(self, piece: str) -> None:
        self._latest.append(piece)
        if len(self._latest) >= _BATCH:
            self._joined.append("".join(self._latest))
            self._latest.clear()

    def extend(self, other: _Pieces) -> None:
        for piece in other.joined():
            self.add(piece)

    def joined(self) -> list[str]:
        return [*self._joined, *self._latest]


def _attribute(text: str, at: int) -> tuple[str, str, int]:
    """Key and value of the attribute at `at`, and where it ends: at the end of the text for a tag that never ends."""
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
    """Places from `at` on at which to look for something of `overlap` characters at most, a part of the text at a time.

    This runs in a thread: one call for all of the text would keep the loop from running as long as it takes.
    """
    while at < len(text):
        yield at, min(len(text), at + _WINDOW + overlap)
        at += _WINDOW


def _next(pattern: re.Pattern[str], text: str, at: int, overlap: int = 0) -> int:
    """Where the next match of at most 1 + `overlap` characters is, the end of the text if there is none."""
    for start, end in _windows(text, at, overlap):
        if (found := pattern.search(text, start, end)) is not None:
            return found.start()
    return len(text)


def _behind(mark: str, text: str, at: int) -> int:
    """The place behind the next `mark`, the end of the text if there is none."""
    for start, end in _windows(text, at, len(mark) - 1):
        if (found := text.find(mark, start, end)) >= 0:
            return found + len(mark)
    return len(text)


def _lowered(text: str) -> str:
    """With letters of ASCII in lower case, as html has names."""
    if len(text) <= _WINDOW:
        return lower(text)
    return "".join(lower(text[start:end]) for start, end in _windows(text, 0, 0))


def _end_of_raw(text: str, at: int, name: str) -> int:
    if name == "plaintext":
        return len(text)
    pattern = re.compile(rf"</{name}[ \n\r\t\f/>]", re.IGNORECASE | re.ASCII)
    for start, end in _windows(text, at, len(name) + 3):
        if (found := pattern.search(text, start, end)) is not None:
            return found.start()
    return len(text)


_REFERENCE: Final = re.compile(r"&(?:#([0-9]++);?|#[xX]([0-9a-fA-F]++);?|[^\t\n\f <&#;]{1,32};?)", re.ASCII)
_DECIMALS: Final = 32
"""Digits at the end of a number that count: a power of ten with more zeros is one of two to the thirty-second."""
_HEX_DIGITS: Final = 8
_WINDOWS_1252: Final = bytes(range(0x80, 0xA0)).decode("cp1252", "surrogateescape")


def _meant(found: re.Match[str]) -> str:
    """The text that a character reference stands for: of a number as Go's html has it, which counts in int32."""
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
    """What a value stands for, a part at a time, cut before the beginning of a reference."""
    if len(value) <= _WINDOW:
        return _REFERENCE.sub(_meant, value) if "&" in value else value
    parts = []
    at = 0
    while at < len(value):
        end = at + _WINDOW
        if end < len(value) and (cut := value.rfind("&", end - _LONGEST_REFERENCE, end)) > at:
            end = cut
        parts.append(_REFERENCE.sub(_meant, value[at:end]))
        at = end
    return "".join(parts)


def _escaped(value: str) -> str:
    """As Go's html.EscapeString."""
    if len(value) > _WINDOW:
        return "".join(_escaped(value[at : at + _WINDOW]) for at in range(0, len(value), _WINDOW))
    return (
        value.replace("&", "&amp;")
        .replace("'", "&#39;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&#34;")
        .replace("\r", "&#13;")
    )


class PageBody:
    """A page that was rewritten, read as a backend's answer is; it keeps its place among those in hand to the end."""

    def __init__(self, data: bytes, place: asyncio.Semaphore) -> None:
        self._data = data
        self._place: asyncio.Semaphore | None = place

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The page in pieces. Raises BodyAborted."""
        for at in range(0, len(self._data), _PIECE):
            if self._place is None:
                raise BodyAborted("the page is cut off")
            yield self._data[at : at + _PIECE]

    def cut_off(self) -> None:
        """Lets nothing more be read."""
        place, self._place = self._place, None
        if place is not None:
            place.release()

    async def close(self) -> None:
        """Forgets the page."""
        self.cut_off()
        self._data = b""


def _place_of(user: str) -> asyncio.Semaphore:
    """The places for pages of a user that are read, rewritten or sent: each is held as a whole, some times over."""
    key = (id(asyncio.get_running_loop()), user)
    place = _in_hand.get(key)
    if place is None:
        place = _in_hand[key] = asyncio.Semaphore(PAGES_OF_A_USER)
    return place


async def rewritten_page(rewriter: Rewriter, answer: Answer, encoding: str, user: str) -> tuple[PageBody, int]:
    """The whole page of an answer, rewritten, and its length in bytes; waits while the user has many in hand.

    Raises StatusError: 429 if the worker threads have much to do for the user, 500 for a page that is cut off or
    cannot be decompressed, 503 for one that is too large.
    """
    place = _place_of(user)
    await place.acquire()
    try:
        data = await _rewritten(rewriter, answer, encoding)
    except BaseException:
        place.release()
        raise
    return PageBody(data, place), len(data)


async def _rewritten(rewriter: Rewriter, answer: Answer, encoding: str) -> bytes:
    try:
        data = await answer.read(MAX_PAGE_BYTES + 1)
    except BodyAborted as error:
        raise plain_internal(str(error)) from None
    if len(data) > MAX_PAGE_BYTES:
        raise service_unavailable(f"error trying to reach service: a page of more than {MAX_PAGE_BYTES} bytes")
    check_backlog(current())
    text = await offload_if(True, _text, data, encoding)
    del data
    page = _Pieces()
    tags = rewriter.tags(text, page)
    while await offload_if(True, _goes_on, tags):
        pass
    return await offload_if(True, _body, page, encoding)


def _goes_on(tags: Iterator[None]) -> bool:
    """Works on some tags of a page; whether there are more."""
    end = monotonic() + _STEP
    return any(monotonic() > end for _ in tags)


def _window_of(encoding: str) -> int | None:
    return {"gzip": 16 + zlib.MAX_WBITS, "deflate": -zlib.MAX_WBITS}.get(encoding)


def _text(data: bytes, encoding: str) -> str:
    """A page as text. Raises StatusError."""
    if encoding:
        data = _decompressed(data, encoding)
    return _decoded(data)


def _decompressed(data: bytes, encoding: str) -> bytes:
    """All members of a gzip stream, or one of flate. Raises StatusError."""
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


def _body(page: _Pieces, encoding: str) -> bytes:
    data = _encoded(page.joined())
    window = _window_of(encoding)
    if window is None:
        return data
    writer = zlib.compressobj(wbits=window)
    return writer.compress(data) + writer.flush()


def _decoded(data: bytes) -> str:
    """As UTF-8, a part at a time; what is none is kept."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    parts = [decoder.decode(data[at : at + _WINDOW]) for at in range(0, len(data), _WINDOW)]
    return "".join([*parts, decoder.decode(b"", True)])


def _encoded(pieces: Iterable[str]) -> bytes:
    return b"".join(
        piece[start:end].encode("utf-8", "surrogateescape") for piece in pieces for start, end in _windows(piece, 0, 0)
    )
