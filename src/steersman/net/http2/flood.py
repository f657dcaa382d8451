"""Bounds on what costs the peer little and the server something: resets, pings, settings, empty frames."""

from __future__ import annotations


class TokenBucket:
    """`burst` at once, `rate` a second after that."""

    __slots__ = ("_burst", "_rate", "_seen", "_tokens")

    def __init__(self, *, burst: float, rate: float, now: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = burst
        self._seen = now

    def take(self, now: float) -> bool:
        """Takes one; False if there is none left."""
        self._tokens = min(self._burst, self._tokens + (now - self._seen) * self._rate)
        self._seen = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
