"""In how many seconds a client whose request was refused is told to come again, by priority level.

Follows k8s.io/apiserver `util/flowcontrol/dropped_requests_tracker.go`: twice as long where many are refused in a row,
a second less where few are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

LONGEST: Final = 32
"""Seconds."""
_MANY: Final = 3
"""Refused requests a second from which the wait doubles."""


class _Level:
    """What was refused of one level: by second, and what clients are told since when."""

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
    """Counts what is refused. `clock` tells seconds since 1970."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._levels: dict[str, _Level] = {}

    def note(self, level: str) -> int:
        """Counts a request of the level, and says in how many seconds its client is to come again."""
        found = self._levels.get(level)
        if found is None:
            found = self._levels[level] = _Level()
        found.note(int(self._clock()))
        return found.seconds

    def forget(self, level: str) -> None:
        """Nothing is known any more of a level that is gone."""
        self._levels.pop(level, None)
