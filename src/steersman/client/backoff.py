"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import random


class Backoff:
    """Waits that double from `base` to `most` seconds, each up to twice as long by chance (client-go wait.Backoff)."""

    def __init__(self, base: float, most: float) -> None:
        self._base = base
        self._most = most
        self._wait = base

    def next(self) -> float:
        """Seconds to wait now."""
        wait, self._wait = self._wait, min(self._wait * 2, self._most)
        return wait * (1 + random.random())

    def reset(self) -> None:
        """Begins again with the base."""
        self._wait = self._base
