"""Log lines about what requests can make happen again and again: few of each kind, however often it happens."""

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
    """A logger that writes at most one warning of each key a minute; the next one tells how many were left out.

    Of more than 256 keys those that were not used lately are forgotten.
    """

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = monotonic) -> None:
        self._logger: Final = logger
        self._clock: Final = clock
        self._seen: Final[BoundedCache[str, tuple[float, int]]] = BoundedCache(_MOST_KEYS)
        """When the last line of a key was written, and how many were left out since."""

    def warning(self, key: str, text: str, *arguments: object) -> None:
        """Log a warning, unless one of the same key was logged less than a minute ago."""
        key = key[:_LONGEST_KEY]
        moment = self._clock()
        written, left_out = self._seen[key] or (moment - _EVERY, 0)
        if moment - written < _EVERY:
            self._seen.keep(key, (written, left_out + 1))
            return
        self._seen.keep(key, (moment, 0))
        more = f" ({left_out} more in the last {moment - written:.0f} s)" if left_out else ""
        self._logger.warning(text + "%s", *arguments, more)
