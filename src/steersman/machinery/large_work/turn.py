"""A turn of the loop that does not last: for work of many small parts, each of which is done at once."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

_LONGEST: Final = 0.005


class Turn:
    """Begins when it is made; lasts for `longest` seconds."""

    __slots__ = ("_longest", "_until")

    def __init__(self, longest: float = _LONGEST) -> None:
        self._longest = longest
        self._until = monotonic() + longest

    async def give(self) -> None:
        """To be called between the parts: lets others have the loop if this turn has lasted long enough."""
        if monotonic() > self._until:
            await asyncio.sleep(0)
            self._until = monotonic() + self._longest
