"""Commands that end on SIGTERM as on an interrupt: their temporary files and folders go."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class Terminated(Exception):
    """The end of a command by SIGTERM, after its cleanup."""


async def cancelled_by_sigterm(work: Coroutine[Any, Any, R]) -> R:
    """Return the result of `work`, which SIGTERM cancels. Raises Terminated then."""
    task = asyncio.ensure_future(work)
    if threading.current_thread() is threading.main_thread():  # others get no signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        own = asyncio.current_task()
        if own is not None and own.cancelling():  # by an interrupt, for which asyncio cancels the whole program
            raise
        raise Terminated from None
