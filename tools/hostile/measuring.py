"""A case on both servers: ever larger until it is over its bounds, and what of that is too much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .case import Case, Message
from .server import AttackedServer, Hold, Measured

_REFERENCE_FLOOR: Final = 0.005
"""Seconds: half a tick of the clock by which processor time is told."""
_FAR_OVER: Final = 10
"""Multiple of a bound at which the growth of a case ends."""
_AGAIN: Final = 2


@dataclass(frozen=True)
class Bounds:
    """`held` is the longest time that the loop may be held, `ratio` how many times the reference's processor time may
    be taken, where that is more than `floor`, `other` the longest wait of a user who has no part in it, whose requests
    are never to be turned away; times in seconds."""

    held: float = 0.05
    ratio: float = 10.0
    floor: float = 0.05
    other: float = 1.0


@dataclass(frozen=True)
class Result:
    """A case of one size on both servers."""

    name: str
    size: int
    ours: Measured
    reference: Measured | None
    bounds: Bounds
    takes_seats: bool = False

    @property
    def held(self) -> float:
        """Longest hold in seconds: by the server's own watchdog; if the server did not come back, of the clock."""
        if self.ours.broken:
            return max(self.ours.wait, self.ours.seconds)
        return self.ours.held.cpu if self.ours.held else 0.0

    @property
    def hold(self) -> Hold | None:
        return self.ours.held

    @property
    def ratio(self) -> float | None:
        """Processor time as a multiple of the reference's; None without a comparison."""
        if self.reference is None or self.reference.broken:
            return None
        return self.ours.cpu / max(self.reference.cpu, _REFERENCE_FLOOR)

    @property
    def badness(self) -> float:
        """Largest multiple of a bound; more than 1 is too much."""
        over = self.held / self.bounds.held
        if not self.takes_seats:
            over = max(over, self.ours.other / self.bounds.other)
            if self.ours.turned_away:
                over = max(over, 1.0 + self.ours.turned_away)
        if self.ratio is not None and self.ours.cpu > self.bounds.floor:
            over = max(over, self.ratio / self.bounds.ratio)
        return max(over, 1000.0) if self.ours.broken else over

    @property
    def offends(self) -> bool:
        return self.badness > 1


class Measurer:
    """Plays cases; a server that does not come back is started again."""

    def __init__(
        self, ours: AttackedServer, reference: AttackedServer | None, bounds: Bounds, *, always: bool = False
    ) -> None:
        self._ours, self._reference, self._bounds, self._always = ours, reference, bounds, always
        self.requests = 0

    def play(self, case: Case, sizes: Sequence[int]) -> Iterator[Result]:
        """The results of growing sizes, up to the first that is far too much already."""
        last = 0
        for size in case.sizes or sizes:
            size = min(size, case.largest)
            if size <= last:
                return
            last = size
            result = self._result(case, size)
            if result is None:
                return
            yield result
            if result.badness > _FAR_OVER or result.ours.broken:
                return

    def _result(self, case: Case, size: int) -> Result | None:
        message = case.make(size, self._ours)
        if message is None:
            return None
        self.requests += 1
        found = self._played(case, message)
        for _ in range(_AGAIN):
            if found.ours.broken or not found.offends or found.badness > _FAR_OVER:
                break
            message = case.make(size, self._ours) or message  # what was made cannot be made again
            again = self._played(case, message)
            if again.badness < found.badness or again.ours.broken:
                found = again  # the rest was the machine's doing
        if found.ours.broken:
            self._ours.restart()
        if self._reference is None or not (self._always or found.ours.cpu > self._bounds.floor or found.ours.broken):
            return found
        same = case.make(size, self._reference)
        if same is None:
            return found
        reference = self._reference.measure(same, case.lasting)
        if reference.broken:
            self._reference.restart()
        compared = Result(found.name, found.size, found.ours, reference, self._bounds, case.takes_seats)
        if compared.offends and not found.offends:  # by its time alone: once more, and the best counts
            message = case.make(size, self._ours) or message
            ours = self._ours.measure(message, case.lasting)
            if not ours.broken and ours.cpu < found.ours.cpu:
                compared = Result(found.name, found.size, ours, reference, self._bounds, case.takes_seats)
        return compared

    def _played(self, case: Case, message: Message) -> Result:
        """The result on our server alone."""
        ours = self._ours.measure(message, case.lasting)
        return Result(case.name, message.size, ours, None, self._bounds, case.takes_seats)
