"""Sources: streams of JSON documents that the front makes itself, beside those of the API server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Final

from steersman.machinery.errors.status import StatusError

Source = Callable[[], AsyncGenerator[list[bytes], None]]
"""A source: each reader gets batches of JSON documents of its own, and SourceFailed when the source cannot go on."""


class SourceFailed(Exception):
    """A source ends, as the API server refuses it something or does not answer: an HTTP status, and the reason."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.status: Final = error.code if isinstance(error, StatusError) else 503
