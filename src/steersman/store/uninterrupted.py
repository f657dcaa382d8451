"""Work that belongs together whatever becomes of the request that began it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


async def uninterrupted(work: Coroutine[Any, Any, R]) -> R:
    """Does `work` to its end also if the caller is cancelled meanwhile, who then does not learn how it ended.

    For a write and what was taken or is to be given back along with it: storage commits what it has begun, cancelled
    or not, so that only the end of the write tells which of the two it was.
    """
    return await asyncio.shield(asyncio.ensure_future(work))
