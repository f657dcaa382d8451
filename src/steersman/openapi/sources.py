"""The interface of OpenAPI documents: an ETag of their state, and a method that builds them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Protocol

Tree = dict[str, Any]
"""A decoded JSON object."""


class Source(Protocol):
    """A document that can be built. `build` may run in any thread and returns a new tree."""

    @property
    def etag(self) -> str:
        """Return the ETag, which changes whenever the document does: hexadecimal, without quotes."""
        ...

    def build(self) -> Tree:
        """Build the document."""
        ...


def etag_of(parts: Iterable[str]) -> str:
    """Return an ETag of texts that describe a state: SHA-512 in upper-case hexadecimal, like upstream's ETags."""
    digest = hashlib.sha512()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest().upper()
