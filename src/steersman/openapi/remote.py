"""What other servers publish of OpenAPI: v2 documents, which are joined with ours, v3 documents, which they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from steersman.machinery.codec.serializer import decode_plain
from steersman.openapi.sources import Tree
from steersman.server.server import PathHandler


@dataclass(frozen=True, slots=True)
class RemoteDocument:
    """A v2 document of another server, encoded."""

    etag: str
    data: bytes

    def build(self) -> Tree:
        """Decodes it."""
        found = decode_plain(self.data)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True, slots=True)
class RemoteIndex:
    """The v3 documents of another server: where each is, by name, and what answers for them.

    `fetch` gives one by its name, as JSON; None if the server does not answer with it.
    """

    urls: Mapping[str, str]
    answer: PathHandler
    fetch: Callable[[str], Awaitable[bytes | None]]


@dataclass(slots=True)
class RemoteDocuments:
    """By name of the APIService. v2 documents are joined in the order they stand in."""

    v2: dict[str, RemoteDocument] = field(default_factory=dict)
    converted: dict[str, RemoteDocument] = field(default_factory=dict)
    """v3 documents made of v2, by their own names, of servers that have no others."""
    v3: dict[str, RemoteIndex] = field(default_factory=dict)
    changes: int = 0
    """How often anything has changed."""
