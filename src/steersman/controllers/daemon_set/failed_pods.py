"""Back-off before failed pods of DaemonSets are replaced again."""

from __future__ import annotations

from typing import Final

from steersman.work import simulated_time
from steersman.work.backoff import Backoff
from steersman.work.bounded_cache import BoundedCache

_BACKOFF: Final = Backoff(1.0, 900.0)
"""Back-off in seconds before failed pods on a node are replaced again."""
_MOST_BACKOFFS: Final = 1 << 16
"""Largest number of nodes of all DaemonSets with a back-off; beyond it, the oldest back-offs end early."""


class FailedPodBackoff:
    """Back-off for the replacement of failed pods (client-go flowcontrol.Backoff).

    A key is the uid and generation of a DaemonSet, and the name of a node.
    """

    def __init__(self) -> None:
        self._waits: BoundedCache[tuple[str, int, str], tuple[int, float]] = BoundedCache(_MOST_BACKOFFS)
        """Number of consecutive waits of each key, and the start of the last one on the event loop's clock."""

    def wait(self, key: tuple[str, int, str]) -> float:
        """Return the seconds to wait; 0 if the wait is over, which lengthens the next one."""
        now = simulated_time.time()
        waits, since = self._waits[key] or (0, now)
        if waits and now - since < (delay := _BACKOFF.wait(waits - 1)):
            return delay
        rested = now - since > 2 * _BACKOFF.longest
        self._waits.keep(key, ((1 if rested else waits + 1), now))
        return 0.0
