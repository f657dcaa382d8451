"""Events cut to a size: of one that is too large the objects are left out (`--audit-*-truncate-*`)."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final

import msgspec

from steersman.api.audit.v1 import Event
from steersman.audit.backends.backend import Backend, Records, together
from steersman.audit.documents import as_go_escapes
from steersman.audit.errors import Errors
from steersman.audit.policy import LEVELS, Level
from steersman.machinery.codec.serializer import decode_json

_PLUGIN: Final = "truncate"
_HEAD: Final = len(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",\n')
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class _Rest(msgspec.Struct, rename="camel"):
    """What is looked at of an event that is too large."""

    level: str = ""


@dataclass(frozen=True, slots=True)
class Sizes:
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
            cut = record if len(record) + _HEAD <= self._sizes.event else truncated(record)
            (taken if len(cut) + _HEAD <= self._sizes.event else too_large).append(cut)
        if too_large:
            self._errors.lost(_PLUGIN, "event is too large even after truncating", too_large)
        waiting = [each for batch in self._batches(taken) if (each := self._backend.process(batch)) is not None]
        return together(waiting)

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
    event.annotations = {**event.annotations, "audit.k8s.io/truncated": "true"}
    return as_go_escapes(_ENCODER.encode(event)[1:])
