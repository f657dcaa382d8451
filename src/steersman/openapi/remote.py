"""OpenAPI documents of other servers: v2 documents are merged with ours, v3 documents are proxied."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from steersman.machinery.codec.serializer import decode_plain
from steersman.openapi.sources import Tree
from steersman.server.server import PathHandler


@dataclass(frozen=True, slots=True)
class RemoteDocument:
    """An encoded v2 document of another server."""

    etag: str
    data: bytes

    def build(self) -> Tree:
        """Decode the document."""
        plain = decode_plain(self.data)
        assert isinstance(plain, dict)
        return plain


@dataclass(frozen=True, slots=True)
class RemoteIndex:
    """The v3 documents of another server: their URLs by name, and the handler that proxies them.

    `fetch` returns a document by its name, as JSON; None if the server does not return it.
    """

    urls: Mapping[str, str]
    answer: PathHandler
    fetch: Callable[[str], Awaitable[bytes | None]]


@dataclass(slots=True)
class RemoteDocuments:
    """Documents by the name of their APIService. v2 documents are merged in the order of the dict."""

    v2: dict[str, RemoteDocument] = field(default_factory=dict)
    converted: dict[str, RemoteDocument] = field(default_factory=dict)
    """v3 documents converted from v2, by document name, of servers that publish no v3."""
    v3: dict[str, RemoteIndex] = field(default_factory=dict)
    changes: int = 0
    """The number of changes so far."""
