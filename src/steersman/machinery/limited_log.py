"""Rate-limited log lines about events that requests can cause again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Final

from steersman.work.bounded_cache import BoundedCache

_EVERY: Final = 60.0
"""Seconds between two lines of one key."""
_MOST_KEYS: Final = 256
_LONGEST_KEY: Final = 512


class LimitedLog:
    """A logger that writes at most one warning a minute for each key.

    The next warning of a key tells how many were left out. At most 256 keys are remembered; the least recently used key
    is evicted.
    """

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = monotonic) -> None:
        self._logger: Final = logger
        self._clock: Final = clock
        self.seen: Final[BoundedCache[str, tuple[float, int]]] = BoundedCache(_MOST_KEYS)
        """The time of each key's last line, and the number of lines left out since."""

    def warning(self, key: str, text: str, *arguments: object) -> None:
        """Log a warning, unless one with the same key was logged less than a minute ago."""
        key = key[:_LONGEST_KEY]
        moment = self._clock()
        written, left_out = self.seen[key] or (moment - _EVERY, 0)
        if moment - written < _EVERY:
            self.seen.keep(key, (written, left_out + 1))
            return
        self.seen.keep(key, (moment, 0))
        more = f" ({left_out} more in the last {moment - written:.0f} s)" if left_out else ""
        self._logger.warning(text + "%s", *arguments, more)
