"""Controllers under test, and waiting for what they do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from steersman.client.client import Client

T = TypeVar("T")

Run = Callable[..., Awaitable[Client]]
"""Starts controllers (their classes; settings by name); the client is the administrator's."""


async def eventually(look: Callable[[], Awaitable[T]], *, seconds: float = 30) -> T:
    """What `look` finds, once that is true. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while True:
            found = await look()
            if found:
                return found
            await asyncio.sleep(0.002)
