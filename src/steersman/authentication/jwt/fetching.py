"""Fetching of issuers' documents over HTTPS, and their lifetime in caches."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import urljoin, urlsplit

from steersman.machinery.errors.field import quote
from steersman.machinery.go.urls import redacted_url
from steersman.net.ascii import SPACE, is_digits, lower
from steersman.net.client.answer import BadAnswer
from steersman.net.client.dial import DialError
from steersman.net.client.egress import Dial
from steersman.net.client.tls import HTTP2
from steersman.net.client.transport import Address, Sender, Transport
from steersman.net.message import BodyAborted
from steersman.webhooks.client import LONGEST_LOCATION
from steersman.webhooks.kubeconfig import KubeconfigError, client_tls

TIMEOUT: Final = 30.0
"""Seconds allowed for a document with all redirects."""
MAX_DOCUMENT: Final = 1 << 20
"""Limit of a document in bytes."""
_MOST_REDIRECTS: Final = 10
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PORTS: Final = {"https": 443, "http": 80}
_USER_AGENT: Final = "Go-http-client/1.1"
_DAY: Final = 86400.0
_OF_AGE: Final = 0.1
"""Fraction of a document's age by which it stays valid if the answer has only a modification time."""


class FetchError(Exception):
    """A document could not be fetched; the text is Go's where Go has one."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document from an answer with status 200; `good_for` is its lifetime in seconds, 0 if the answer has none."""

    body: bytes
    content_type: str
    good_for: float


Fetch = Callable[[str, str], Awaitable[Document]]
"""Function (URL, bearer token or "") -> the document. Raises FetchError."""


class Fetcher:
    """Fetcher of documents from servers that the PEM `authorities` vouch for; the system's CAs if it is empty.

    Takes milliseconds to construct. Raises FetchError for unusable CAs.
    """

    def __init__(self, authorities: str, sender: Sender | None = None, *, leave: Dial | None = None) -> None:
        if sender is None:
            try:
                context = client_tls(authorities.encode(), protocols=HTTP2)
            except KubeconfigError as error:
                raise FetchError(str(error)) from None
            sender = Transport(_always(context), protocols=HTTP2, leave=leave)
        self._sender = sender

    def close(self) -> None:
        """Close pooled connections."""
        self._sender.close()

    async def fetch(self, url: str, token: str = "") -> Document:
        """Fetch a document. See Fetch."""
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._followed(url, token)
        except TimeoutError:
            why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise FetchError(f"Get {quote(redacted_url(url))}: {why}") from None
        except BodyAborted as error:
            raise FetchError(f"unable to read response body: {error}") from None
        except (DialError, BadAnswer, OSError, ValueError) as error:
            raise FetchError(f"Get {quote(redacted_url(url))}: {error}") from None

    async def _followed(self, url: str, token: str) -> Document:
        first = _origin(url)
        for _ in range(_MOST_REDIRECTS):
            address, target = _address_and_target(url)
            headers = [("Host", urlsplit(url).netloc.rpartition("@")[2]), ("User-Agent", _USER_AGENT)]
            if token and _origin(url) == first:  # a redirect must not send the token to another server
                headers.append(("Authorization", f"Bearer {token}"))
            answer = await self._sender.send(address, "GET", target, headers)
            try:
                body = await answer.read(MAX_DOCUMENT + 1)
            finally:
                await answer.close()
            location = answer.header("location")
            if answer.status not in _REDIRECTS or not location:
                break
            if len(location) > LONGEST_LOCATION:
                raise BadAnswer(f"failed to parse Location header: it has more than {LONGEST_LOCATION} characters")
            url = urljoin(url, location)
        else:
            raise BadAnswer(f"stopped after {_MOST_REDIRECTS} redirects")
        if len(body) > MAX_DOCUMENT:
            raise FetchError(f"the document is longer than {MAX_DOCUMENT} bytes")
        if answer.status != 200:
            raise FetchError(f"{_status(answer.status)}: {body.decode('utf-8', 'replace')[:1024]}")
        return Document(body, answer.header("content-type"), lifetime(dict(answer.headers)))


def _always(context: ssl.SSLContext) -> Callable[[tuple[str, ...]], ssl.SSLContext]:
    return lambda _: context


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _address_and_target(url: str) -> tuple[Address, str]:
    """Return the address and the request target of a URL. Raises ValueError if it is no HTTP URL."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        raise ValueError(f"unsupported protocol scheme {quote(parts.scheme)}")
    if not parts.hostname:
        raise ValueError("http: no Host in request URL")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.hostname, parts.port or _PORTS[parts.scheme], parts.scheme == "https"), target


def lifetime(headers: dict[str, str]) -> float:
    """Return the seconds for which a shared cache may keep an answer (RFC 9111, section 4.2)."""
    directives: dict[str, str] = {}
    for part in headers.get("cache-control", "").split(","):
        name, _, value = part.strip(SPACE).partition("=")
        directives[lower(name)] = value.strip('"')
    if directives.keys() & {"no-store", "no-cache", "private"}:
        return 0.0
    for name in ("s-maxage", "max-age"):
        value = directives.get(name, "")
        if is_digits(value):
            return float(int(value[:9]))
    now = _seconds(headers.get("date", ""))
    expires, modified = _seconds(headers.get("expires", "")), _seconds(headers.get("last-modified", ""))
    if now and expires:
        return max(0.0, expires - now)
    if now and modified:
        return max(0.0, min(_DAY, (now - modified) * _OF_AGE))
    return 0.0


def _seconds(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0
