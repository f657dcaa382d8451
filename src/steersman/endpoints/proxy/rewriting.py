"""Links in what a backend answers, made to lead through this server: redirects, and attributes in HTML pages.

Follows k8s.io/apimachinery `util/proxy` (Transport). A start tag is written anew, as golang.org/x/net/html does, and
everything else is left as it came.
"""

from __future__ import annotations

import asyncio
import html
import logging
import re
import zlib
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from steersman.endpoints.proxy.location import escaped_path, join_path
from steersman.machinery.errors import internal, service_unavailable
from steersman.net.http_client import Answer
from steersman.net.message import BodyAborted, Response

logger = logging.getLogger(__name__)

MAX_PAGE_BYTES: Final = 8 << 20
"""Of a page whose links are rewritten, also once it is decompressed; a larger one is refused."""

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
_MARKUP: Final = re.compile(r"<(?:(?P<comment>!--)|(?P<other>[/!?])|(?P<name>[A-Za-z][^\s/>]*))")
_ATTRIBUTE: Final = re.compile(
    r"[\s/]*(?P<key>[^\s/>=][^\s/>=]*|=[^\s/>=]*)(?:\s*=\s*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>[^\s>]+))?)?"
)
_MARKUP_START: Final = re.compile(r"<[/!?A-Za-z]")
_WINDOW: Final = 32 << 10
"""Characters that one call of the standard library looks at."""
_LONGEST_REFERENCE: Final = 64
"""More characters than a character reference has, but for the digits of a number."""
_LONGEST_LINK: Final = 64 << 10
"""Characters of a link that is rewritten; a longer one is left as it is."""
_TAG_END: Final = re.compile(r"[\s/]*>")


class Rewriter:
    """`prefix` is the path under which this server shows the backend at `backend` (host and port); `host` is the name
    by which the client reached this server."""

    def __init__(self, prefix: str, backend: str, host: str) -> None:
        self.prefix = prefix
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
        scheme, host = (parts.scheme, parts.netloc) if ours else ("", "")
        path = parts.path
        if not path.startswith(self.prefix):
            path = join_path(escaped_path(self.prefix), path) + ("/" if path.endswith("/") else "")
        return urlunsplit((scheme, host, path, parts.query, parts.fragment))

    def with_redirect(self, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The fields of an answer with the Location field rewritten."""
        return [(name, self.url(value) if name == "location" and value else value) for name, value in headers]

    def is_page(self, headers: list[tuple[str, str]]) -> bool:
        """Whether an answer is an HTML page, and no redirect."""
        fields = dict(headers)
        return not fields.get("location") and fields.get("content-type", "").partition(";")[0].strip() == "text/html"

    def page(self, text: str) -> str:
        """An HTML page with its links rewritten."""
        return "".join(self._pieces(text))

    def _pieces(self, text: str) -> Iterator[str]:
        at = 0
        while (found := _next_markup(text, at)) is not None:
            yield text[at : found.start()]
            if found["name"]:
                at, tag, name = self._start_tag(text, found)
                yield tag
                if name in _RAW and at < len(text):
                    end = _end_of_raw(text, at, name)
                    yield text[at:end]
                    at = end
            else:
                end = text.find("-->" if found["comment"] else ">", found.end())
                stop = len(text) if end < 0 else end + (3 if found["comment"] else 1)
                yield text[found.start() : stop]
                at = stop
        yield text[at:]

    def _start_tag(self, text: str, found: re.Match[str]) -> tuple[int, str, str]:
        """Where the tag ends, the tag anew, and its element; a tag that never ends is left as it is."""
        name = found["name"].lower()
        links = _LINKS.get(name, ())
        at = found.end()
        attributes = []
        while (end := _TAG_END.match(text, at)) is None:
            attribute = _ATTRIBUTE.match(text, at)
            if attribute is None:
                return len(text), text[found.start() :], ""
            at = attribute.end()
            key = attribute["key"].lower()
            value = _unescaped(attribute["double"] or attribute["single"] or attribute["bare"] or "")
            if key in links and len(value) <= _LONGEST_LINK:
                value = self.url(value)
            attributes.append(f' {key}="{_escaped(value)}"')
        closed = "/" if text[end.end() - 2] == "/" else ""
        return end.end(), f"<{name}{''.join(attributes)}{closed}>", name


def _windows(text: str, at: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Places from `at` on at which to look for something of `overlap` characters at most, a part of the text at a time.

    This runs in a thread: one call for all of the text would keep the loop from running as long as it takes.
    """
    while at < len(text):
        yield at, min(len(text), at + _WINDOW + overlap)
        at += _WINDOW


def _next_markup(text: str, at: int) -> re.Match[str] | None:
    """The next tag, comment or declaration."""
    for start, end in _windows(text, at, 1):
        if (place := _MARKUP_START.search(text, start, end)) is not None:
            return _MARKUP.match(text, place.start())
    return None


def _end_of_raw(text: str, at: int, name: str) -> int:
    if name == "plaintext":
        return len(text)
    pattern = re.compile(rf"</{name}[\s/>]", re.IGNORECASE)
    for start, end in _windows(text, at, len(name) + 3):
        if (found := pattern.search(text, start, end)) is not None:
            return found.start()
    return len(text)


def _unescaped(value: str) -> str:
    """As html.unescape, a part at a time, cut before the beginning of a reference."""
    if len(value) <= _WINDOW:
        return html.unescape(value)
    parts = []
    at = 0
    while at < len(value):
        end = at + _WINDOW
        if end < len(value) and (cut := value.rfind("&", end - _LONGEST_REFERENCE, end)) > at:
            end = cut
        parts.append(html.unescape(value[at:end]))
        at = end
    return "".join(parts)


def _escaped(value: str) -> str:
    """As Go's html.EscapeString."""
    if len(value) > _WINDOW:
        return "".join(_escaped(value[at : at + _WINDOW]) for at in range(0, len(value), _WINDOW))
    return (
        value.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;")
        .replace('"', "&#34;").replace("\r", "&#13;")
    )  # fmt: skip


async def rewritten_page(rewriter: Rewriter, answer: Answer, headers: list[tuple[str, str]]) -> Response | None:
    """The whole page of an answer, rewritten; None if its encoding is not known here, and nothing was read of it.

    Raises StatusError: 500 for one that cannot be decompressed, 503 for one that is cut off or too large.
    """
    encoding = answer.header("content-encoding")
    if encoding not in ("", "gzip", "deflate"):
        logger.warning("links of a page with the encoding %r are not rewritten", encoding)
        return None
    try:
        data = await answer.read(MAX_PAGE_BYTES + 1)
    except BodyAborted as error:
        raise service_unavailable(f"error trying to reach service: {error}") from None
    if len(data) > MAX_PAGE_BYTES:
        raise service_unavailable(f"error trying to reach service: a page of more than {MAX_PAGE_BYTES} bytes")
    body = await asyncio.to_thread(_rewrite, rewriter, data, encoding)
    return Response(answer.status, headers, body)


def _rewrite(rewriter: Rewriter, data: bytes, encoding: str) -> bytes:
    window = {"gzip": 16 + zlib.MAX_WBITS, "deflate": -zlib.MAX_WBITS}.get(encoding)
    if window is not None:
        reader = zlib.decompressobj(window)
        try:
            data = reader.decompress(data, MAX_PAGE_BYTES)
        except zlib.error:
            why = "gzip: invalid header" if encoding == "gzip" else "flate: corrupt input before offset 0"
            raise internal(f"errorf making {encoding} reader: {why}") from None
        if reader.unconsumed_tail:
            raise service_unavailable(f"error trying to reach service: a page of more than {MAX_PAGE_BYTES} bytes")
    page = rewriter.page(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if window is None:
        return page
    writer = zlib.compressobj(wbits=window)
    return writer.compress(page) + writer.flush()
