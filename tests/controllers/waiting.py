"""Types and waits for tests of controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from steersman.client.client import Client

T = TypeVar("T")

Run = Callable[..., Awaitable[Client]]
"""Function that starts controllers (their classes; settings by name) and returns the administrator's client."""


async def eventually(look: Callable[[], Awaitable[T | None]], *, seconds: float = 30) -> T:
    """Return the result of `look` once it is true. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while True:
            found = await look()
            if found:
                return found
            await asyncio.sleep(0.002)
