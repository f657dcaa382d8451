"""Events cut to a size: of one that is too large the objects are left out (`--audit-*-truncate-*`)."""

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
"""As for User-Agent."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class _Rest(msgspec.Struct, rename="camel"):
    """What is looked at of an event that is too large."""

    level: str = ""


class Sizes(Struct, frozen=True):
    """Of an event and of a batch, in bytes."""

    event: int = 100 * 1024
    batch: int = 10 * 1024 * 1024


class Truncating:
    """Hands events on in batches that are not larger than they may be. What stays too large is lost, and counted."""

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
    """A record without the objects of its request and response; one that records none stays as it is."""
    document = b"{" + record
    if LEVELS[msgspec.json.decode(document, type=_Rest).level] < Level.REQUEST:
        return record
    event = decode_json(Event, document)
    event.request_object = event.response_object = None
    return _marked(event)


def shortened(record: bytes) -> bytes:
    """A record with the texts that whoever sends a request makes as long as they like cut to some characters: nobody
    is to keep a request out of the log by parameters that mean nothing. Upstream loses such an event."""
    event = decode_json(Event, b"{" + record)
    event.request_uri = _cut(event.request_uri)
    event.audit_id = _cut(event.audit_id)
    return _marked(event)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...TRUNCATED"


def _marked(event: Event) -> bytes:
    event.annotations = {**event.annotations, "audit.k8s.io/truncated": "true"}
    return as_go_escapes(_ENCODER.encode(event)[1:])
