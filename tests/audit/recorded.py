"""Helpers of audit tests: a recording backend, and records as the trail encodes them."""

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
    """Return a minimal record."""
    return json.dumps({"level": level, "auditID": str(number)} | members, separators=(",", ":")).encode()[1:]


class Kept:
    """A backend that records batches; while `held` it answers none of them, and `fails` is its answer."""

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
    """Return the reporter of losses, and its metrics."""
    metrics = AuditMetrics(Registry())
    return Errors(metrics), metrics
