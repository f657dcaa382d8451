"""Truncation of large audit events: objects are removed from them (`--audit-*-truncate-*`)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

import msgspec
from msgspec import Struct

from steersman.api.audit.v1 import Event
from steersman.audit.backends.backend import Backend, Records, together
from steersman.audit.documents import as_go_escapes
from steersman.audit.errors import Errors
from steersman.audit.policy import LEVELS, Level
from steersman.machinery.codec.serializer import decode_json

_PLUGIN: Final = "truncate"
_HEAD: Final = len(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",\n')
_LONGEST: Final = 1024
"""Limit of shortened texts in characters, the same as for User-Agent."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class _Rest(msgspec.Struct, rename="camel"):
    """Member of a large event that is needed to truncate it."""

    level: str = ""


class Sizes(Struct, frozen=True):
    """Limits of an event and of a batch, in bytes."""

    event: int = 100 * 1024
    batch: int = 10 * 1024 * 1024


class Truncating:
    """Wrapper that truncates events and splits batches. Events that remain too large are dropped and counted."""

    def __init__(self, backend: Backend, sizes: Sizes, errors: Errors) -> None:
        self._backend: Final = backend
        self._sizes: Final = sizes
        self._errors: Final = errors
        self.deferred = backend.deferred

    def process(self, records: Records) -> Awaitable[bool] | None:
        """See Backend."""
        taken: list[bytes] = []
        too_large: list[bytes] = []
        for record in records:
            cut = record if self._fits(record) else truncated(record)
            if not self._fits(cut):
                cut = shortened(cut)
            (taken if self._fits(cut) else too_large).append(cut)
        if too_large:
            self._errors.lost(_PLUGIN, "event is too large even after truncating", too_large)
        waiting = [each for batch in self._batches(taken) if (each := self._backend.process(batch)) is not None]
        return together(waiting)

    def _fits(self, record: bytes) -> bool:
        return len(record) + _HEAD <= self._sizes.event

    def _batches(self, records: list[bytes]) -> list[list[bytes]]:
        batches: list[list[bytes]] = []
        size = self._sizes.batch + 1
        for record in records:
            size += len(record) + _HEAD
            if size > self._sizes.batch:
                batches.append([])
                size = len(record) + _HEAD
            batches[-1].append(record)
        return batches

    async def close(self) -> None:
        """See Backend."""
        await self._backend.close()


def truncated(record: bytes) -> bytes:
    """Return a record without its request and response objects; unchanged below level Request."""
    document = b"{" + record
    if LEVELS[msgspec.json.decode(document, type=_Rest).level] < Level.REQUEST:
        return record
    event = decode_json(Event, document)
    event.request_object = event.response_object = None
    return _marked(event)


def shortened(record: bytes) -> bytes:
    """Return a record with the client's URI and audit ID cut to `_LONGEST` characters.

    Otherwise a client could keep a request out of the log by long, meaningless parameters. Upstream drops such an
    event.
    """
    event = decode_json(Event, b"{" + record)
    event.request_uri = _cut(event.request_uri)
    event.audit_id = _cut(event.audit_id)
    return _marked(event)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...TRUNCATED"


def _marked(event: Event) -> bytes:
    event.annotations = {**event.annotations, "audit.k8s.io/truncated": "true"}
    return as_go_escapes(_ENCODER.encode(event)[1:])
