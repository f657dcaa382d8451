"""What may not be done in a turn of the loop, found out only while something is worked on there."""

from __future__ import annotations

import asyncio


class TakesLong(Exception):
    """Raised on the loop where going on would take long: whoever began the work does all of it in the slow lane."""


def takes_long() -> None:
    """To be called before work that may take long. Raises TakesLong in a thread that runs a loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise TakesLong
