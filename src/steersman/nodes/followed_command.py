"""A followed command of a running container, which performs its changes of files when they are due."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from heapq import heapify, heappop, heapreplace
from itertools import islice
from math import inf
from typing import Final

from steersman.machinery.values import times
from steersman.nodes.rehearsal import Printed
from steersman.nodes.shell.effects import NoSpace
from steersman.nodes.volume_store import VolumeKey

_MOST_PRINTED: Final = 64 << 10
"""Bytes of a command's output that are kept."""
_MOST_PIECES: Final = 2000
"""Pieces of a command's output that are kept."""
MOST_AT_ONCE: Final = 0.004
"""Seconds for which commands run before others have the event loop."""
_STEPS: Final = 100
"""Steps of a followed command before others have the event loop."""


class CommandOutput:
    """Printed output of a command. If there is much, only its end is kept."""

    __slots__ = ("_bytes", "_first", "_lines")

    def __init__(self) -> None:
        self._lines: deque[Printed] = deque()
        self._first = 0
        """Number of the first piece that is kept."""
        self._bytes = 0

    def add(self, printed: Printed) -> None:
        """Add a piece, and drop the oldest pieces beyond the bounds."""
        self._lines.append(printed)
        self._bytes += len(printed.data)
        while self._bytes > _MOST_PRINTED or len(self._lines) > _MOST_PIECES:
            self._bytes -= len(self._lines.popleft().data)
            self._first += 1

    def since(self, number: int) -> list[Printed]:
        """Return the kept pieces from the piece `number` on."""
        return list(islice(self._lines, max(0, number - self._first), None))

    @property
    def count(self) -> int:
        """Number of pieces printed so far, with the dropped ones."""
        return self._first + len(self._lines)


class FollowedCommand:
    """A rehearsed command (`rehearsal.rehearsed`) that began at the time `started_at`, with the volumes (`keys`) that it
    uses.

    Times are seconds since 1970.
    """

    __slots__ = ("_at", "_lock", "_rest", "exit_code", "keys", "last", "next", "output", "started_at")

    def __init__(
        self,
        rest: Generator[Printed | float, None, int | None],
        started_at: float,
        keys: Sequence[VolumeKey],
        lock: AbstractContextManager[object],
    ) -> None:
        """Create it at its first step. `lock` is held during each step."""
        self._lock = lock
        self._rest = rest
        self.output = CommandOutput()
        self._at = started_at
        self.started_at = started_at
        self.keys = tuple(keys)
        self.last = inf
        """End of its container, after which it does nothing."""
        self.next: float | None = started_at
        """Time of its next step; None at its end."""
        self.exit_code: int | None = None
        """Exit code at its end; None if it is not known how it goes on."""

    @property
    def ended_at(self) -> float | None:
        """Time at which it has ended by itself; None if it has not, or if it is not known."""
        return self._at if self.next is None and self.exit_code is not None else None

    def run_step(self, until: float) -> bool:
        """Run the next step if it is due at `until`. Return False if none is."""
        with self._lock:
            if self.next is None or self.next > min(until, self.last):
                return False
            self._at = self.next
            try:
                step = next(self._rest)
            except StopIteration as end:
                self.exit_code = end.value
                self.next = None
            except NoSpace:
                self.next = None
            else:
                if isinstance(step, float):
                    self.next = step
                else:
                    self.output.add(step)
                    self.next = step.at
            return True

    def stop(self) -> None:
        """Stop for good, as the container has ended."""
        with self._lock:
            self._rest.close()
            self.next = None

    @property
    def is_finished(self) -> bool:
        """True if no step follows."""
        return self.next is None or self.next > self.last

    def run(self, until: float, most_steps: int) -> None:
        """Run the steps that are due at `until`, at most `most_steps` and for some milliseconds."""
        end = time.perf_counter() + MOST_AT_ONCE
        for _ in range(most_steps):
            if not self.run_step(until) or time.perf_counter() >= end:
                return

    def lines(self) -> Iterator[Printed | float]:
        """Yield the pieces that it prints, and the time of its next step whenever nothing more is printed yet.

        A yielded time in the past means that others may have the event loop. The iterator ends with the command.
        """
        number = 0
        while True:
            yield from self.output.since(number)
            number = self.output.count
            if self.next is None:
                return
            if self.next <= (now := times.unix_now()):
                self.run(now, _STEPS)
                if self.output.count != number:
                    continue
            if self.next is not None:
                yield self.next


def run_in_order(commands: Sequence[FollowedCommand], until: float, most_steps: int) -> Iterator[None]:
    """Run the due steps of several commands in the order of their times, at most `most_steps`.

    Yield after each step.
    """
    due = [
        (each.next, number)
        for number, each in enumerate(commands)
        if each.next is not None and each.next <= min(until, each.last)
    ]
    heapify(due)
    left = most_steps
    while due and left:
        _, number = due[0]
        command = commands[number]
        command.run_step(until)
        left -= 1
        if command.next is not None and command.next <= min(until, command.last):
            heapreplace(due, (command.next, number))
        else:
            heappop(due)
        yield
