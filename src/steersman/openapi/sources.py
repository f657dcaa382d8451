"""Where OpenAPI documents come from: something that names its state (ETag) and builds the document when asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from steersman.openapi.descriptions import Descriptions, source_version
from steersman.openapi.documents import StoredDocument, Tree
from steersman.openapi.texts import describe_operations
from steersman.openapi.selection import Served, select

_REVISION = "2"
"""To be raised when the same inputs make another document."""


class Source(Protocol):
    """A document to be. `build` may run in any thread, and returns a tree that is the caller's own."""

    @property
    def etag(self) -> str:
        """Changes whenever the document does. Hexadecimal, without quotes."""
        ...

    def build(self) -> Tree:
        """Makes the document."""
        ...


def etag_of(parts: Iterable[str]) -> str:
    """An ETag over strings that name a state: SHA-512 in upper-case hexadecimal, the form upstream's have."""
    digest = hashlib.sha512()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest().upper()


def state_of(served: Served) -> str:
    """A digest of all that built-in documents depend on besides what is stored."""
    resources = ("/".join(each) for each in sorted(served.resources))
    return etag_of((_REVISION, source_version(), *resources, "", *sorted(served.paths)))


class BuiltIn:
    """A document of the package, cut down to what is served, with descriptions.

    `state` is the `state_of` what is served.
    """

    def __init__(self, stored: StoredDocument, served: Served, state: str) -> None:
        self._stored = stored
        self._served = served
        self.etag = etag_of((stored.sha256, state))

    def build(self) -> Tree:
        """Loads, cuts and describes: some tens of milliseconds for the largest ones."""
        document = select(self._stored.load(), self._served)
        schemas = document["definitions"] if "definitions" in document else document["components"].get("schemas", {})
        Descriptions().describe(schemas)
        describe_operations(document)
        return document


@dataclass(frozen=True, slots=True)
class Merged:
    """A v2 document and what others add to it: paths, definitions and parameters. The first to name one wins."""

    sources: Sequence[Source]

    @property
    def etag(self) -> str:
        """Of all sources together."""
        return self.sources[0].etag if len(self.sources) == 1 else etag_of(each.etag for each in self.sources)

    def build(self) -> Tree:
        """Builds them all and merges them into the first."""
        document = self.sources[0].build()
        if len(self.sources) == 1:
            return document
        for source in self.sources[1:]:
            for section, entries in source.build().items():
                if section in ("paths", "definitions", "parameters"):
                    present = document.setdefault(section, {})
                    for name, value in entries.items():
                        present.setdefault(name, value)
        return {
            section: dict(sorted(entries.items())) if section in ("paths", "definitions", "parameters") else entries
            for section, entries in document.items()
        }
