"""Large things are forgotten beside the loop: freeing a hundred thousand parts takes as long as making them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def let_go(*owned: Any) -> None:
    """Takes over what somebody owned who ends now (`__del__`), so that its parts are not freed on the loop."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return  # this is not the loop's thread
    if loop.is_closed():
        return
    loop.call_soon(_clear, loop, list(owned))  # when whoever ends now has let go of it


def _clear(loop: asyncio.AbstractEventLoop, parts: list[Any]) -> None:
    with suppress(RuntimeError):  # the loop's threads have ended with the server
        loop.run_in_executor(None, parts.clear)
