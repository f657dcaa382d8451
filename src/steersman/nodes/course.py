"""The command of a running container, followed as far as it has come: what it does to files is done when it is due."""

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
_MOST_PIECES: Final = 2000
"""Bytes and pieces that are kept of what a command prints."""
MOST_AT_ONCE: Final = 0.004
"""Seconds for which commands go on without others having their turn."""
_TURNS: Final = 100
"""For which a command that is followed goes on, between two of which others have their turn."""


class Output:
    """What a command has printed; of much the end is kept."""

    __slots__ = ("_bytes", "_first", "_lines")

    def __init__(self) -> None:
        self._lines: deque[Printed] = deque()
        self._first = 0
        """Number of the first line that is kept."""
        self._bytes = 0

    def add(self, printed: Printed) -> None:
        """Keep one more piece; those before it give way."""
        self._lines.append(printed)
        self._bytes += len(printed.data)
        while self._bytes > _MOST_PRINTED or len(self._lines) > _MOST_PIECES:
            self._bytes -= len(self._lines.popleft().data)
            self._first += 1

    def since(self, number: int) -> list[Printed]:
        """Return what is kept from the piece of a number on."""
        return list(islice(self._lines, max(0, number - self._first), None))

    @property
    def count(self) -> int:
        """How many pieces there have been."""
        return self._first + len(self._lines)


class Course:
    """A rehearsal (`rehearsal.rehearsed`) that began at a moment, in seconds since 1970, on volumes (`keys`)."""

    __slots__ = ("_at", "_lock", "_rest", "began", "exit_code", "keys", "last", "next", "output")

    def __init__(
        self,
        rest: Generator[Printed | float, None, int | None],
        began: float,
        keys: Sequence[VolumeKey],
        lock: AbstractContextManager[object],
    ) -> None:
        """`lock` is held while it goes on."""
        self._lock = lock
        self._rest = rest
        self.output = Output()
        self._at = began
        self.began = began
        self.keys = tuple(keys)
        self.last = inf
        """When its container has ended: it does nothing after that."""
        self.next: float | None = began
        """When it goes on; None at its end."""
        self.exit_code: int | None = None
        """Its exit code at its end; None where it is not known what follows."""

    @property
    def ended(self) -> float | None:
        """When it has ended by itself; None if it has not, or if that is not known."""
        return self._at if self.next is None and self.exit_code is not None else None

    def turn(self, until: float) -> bool:
        """Go on with what is due next, unless that is after `until`. Return False if nothing is."""
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
        """Go on no more, as the container has ended."""
        with self._lock:
            self._rest.close()
            self.next = None

    @property
    def is_through(self) -> bool:
        """Return True if it does nothing more."""
        return self.next is None or self.next > self.last

    def run(self, until: float, most_turns: int) -> None:
        """Go on until a moment, at most by so many turns and for some milliseconds."""
        end = time.perf_counter() + MOST_AT_ONCE
        for _ in range(most_turns):
            if not self.turn(until) or time.perf_counter() >= end:
                return

    def lines(self) -> Iterator[Printed | float]:
        """Yield what it prints, and when it goes on where it has printed nothing more; the end is that of the command.

        A time that has passed is one at which others may have their turn.
        """
        number = 0
        while True:
            yield from self.output.since(number)
            number = self.output.count
            if self.next is None:
                return
            if self.next <= (now := times.moment()):
                self.run(now, _TURNS)
                if self.output.count != number:
                    continue
            if self.next is not None:
                yield self.next


def in_order(courses: Sequence[Course], until: float, most_turns: int) -> Iterator[None]:
    """Have several commands go on until a moment, each when it is its turn; yields after each of their turns, and ends
    after so many."""
    due = [
        (each.next, number)
        for number, each in enumerate(courses)
        if each.next is not None and each.next <= min(until, each.last)
    ]
    heapify(due)
    left = most_turns
    while due and left:
        _, number = due[0]
        course = courses[number]
        course.turn(until)
        left -= 1
        if course.next is not None and course.next <= min(until, course.last):
            heapreplace(due, (course.next, number))
        else:
            heappop(due)
        yield
