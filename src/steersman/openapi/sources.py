"""Where OpenAPI documents come from: something that names its state (ETag) and builds the document when asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Protocol

Tree = dict[str, Any]
"""A decoded JSON object."""


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
