"""What tests of the trail share: a backend that keeps what it is given, and records as the trail makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

from steersman.audit.backends.backend import Records
from steersman.audit.errors import Errors
from steersman.audit.metrics import AuditMetrics
from steersman.machinery.metrics import Registry


def record(number: int, level: str = "Metadata", **members: Any) -> bytes:
    """A record as short as may be."""
    return json.dumps({"level": level, "auditID": str(number)} | members, separators=(",", ":")).encode()[1:]


class Kept:
    """Keeps batches; while `held` it answers none of them, and `fails` says what it answers."""

    deferred = False

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.free = asyncio.Event()
        self.free.set()
        self.fails = False
        self.closed = False

    def process(self, records: Records) -> Awaitable[bool]:
        self.batches.append(list(records))
        return self._answered()

    async def _answered(self) -> bool:
        await self.free.wait()
        return not self.fails

    async def close(self) -> None:
        self.closed = True

    @property
    def sizes(self) -> list[int]:
        return list(map(len, self.batches))


def counted() -> tuple[Errors, AuditMetrics]:
    """Where losses are told, and the counters that tell of them."""
    metrics = AuditMetrics(Registry())
    return Errors(metrics), metrics
