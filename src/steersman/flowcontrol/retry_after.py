"""Retry-After of refused requests, by priority level.

Follows k8s.io/apiserver `util/flowcontrol/dropped_requests_tracker.go`: the seconds double while many requests are
refused, and decrease by one while few are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

LONGEST: Final = 32
"""Limit of Retry-After in seconds."""
_MANY: Final = 3
"""Refused requests per second from which on Retry-After doubles."""


class _Level:
    """Refused requests of one level by second, and its present Retry-After."""

    __slots__ = ("count", "history", "raised", "second", "seconds")

    def __init__(self) -> None:
        self.history: deque[tuple[int, int]] = deque()
        self.second = 0
        self.count = 0
        self.seconds = 1
        self.raised = 0

    def note(self, now: int) -> None:
        if now == self.second:
            self.count += 1
            return
        self.history.append((self.second, self.count))
        oldest = now - min(2 * self.seconds, LONGEST)
        while self.history and self.history[0][0] < oldest:
            self.history.popleft()
        self.second, self.count = now, 1
        self._adapt(now)

    def _adapt(self, now: int) -> None:
        recent = sum(count for second, count in self.history if now - self.seconds <= second < now)
        if now - self.raised >= self.seconds and recent >= _MANY * self.seconds:
            self.seconds, self.raised = min(2 * self.seconds, LONGEST), now
        elif recent < self.seconds and self.seconds > 1:
            self.seconds -= 1


class RefusedRequests:
    """Counts of refused requests. `clock` returns seconds since 1970."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._levels: dict[str, _Level] = {}

    def note(self, level: str) -> int:
        """Count a refused request of the level, and return its Retry-After in seconds."""
        state = self._levels.get(level)
        if state is None:
            state = self._levels[level] = _Level()
        state.note(int(self._clock()))
        return state.seconds

    def forget(self, level: str) -> None:
        """Drop the counts of a removed level."""
        self._levels.pop(level, None)
