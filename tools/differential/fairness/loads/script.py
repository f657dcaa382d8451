"""Scripts for a priority level, one action a tick, and their outcome by this project's own queues.

A script is determined if its outcome does not depend, within bounds, on when servers notice the actions. Only such
scripts are played.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Final

from steersman.flowcontrol.counts import SchemaCounts
from steersman.flowcontrol.estimates import estimate_write, most_seats
from steersman.flowcontrol.queue_set import QueueSet, Queuing, Ticket
from steersman.flowcontrol.shuffle_sharding import deal, flow_hash

TICK: Final = 0.3
"""Seconds from one action to the next."""
FILLING: Final = 2.0
"""Seconds before the first action, in which requests come that have a seat when it begins."""
WATCHES: Final = (0, 15, 35)
"""Watches of each of the namespaces that requests are about."""
_LATE: Final = 0.1
"""Seconds, at most, in which a server finds out."""
_TRIES: Final = 12
_SCRIPTS: Final = 300
_LONGEST: Final = 70
"""Ticks."""
_PART: Final = 4
"""A request may wait for a quarter of its time."""


@dataclass(frozen=True)
class Arrive:
    """A request comes, of one of the users of one of the two flow schemas, about one of the namespaces.

    `patience` is for how many ticks it waits in a queue, 0 for as long as it takes.
    """

    schema: int
    user: int
    namespace: int
    patience: float = 0.0


@dataclass(frozen=True)
class Release:
    """A request that has a seat is answered: the one that came first, or the one after so many others."""

    which: int


@dataclass(frozen=True)
class HangUp:
    """The client of a request that waits goes away."""

    which: int


@dataclass(frozen=True)
class Rest:
    """Nothing is done."""


Action = Arrive | Release | HangUp | Rest
Event = tuple[int, str, int]
"""Tick, kind (`seat`, or the code of an answer other than the webhook's), and number of the request."""


@dataclass(frozen=True)
class Script:
    """Configuration of a level with its seats and flow schemas, and the actions in order."""

    queuing: Queuing
    seats: int
    distinguishers: tuple[str, str]
    names: tuple[str, str]
    """Names of the flow schemas."""
    users: tuple[tuple[str, ...], tuple[str, ...]]
    namespaces: tuple[str, ...]
    filled: int
    """Requests that have a seat when it begins; they are the first, and of the first schema."""
    actions: tuple[Action, ...]

    def arrivals(self) -> list[Arrive]:
        """All requests there are, in their order."""
        filling = [Arrive(0, 0, 0)] * self.filled
        return [*filling, *(each for each in self.actions if isinstance(each, Arrive))]

    @property
    def is_patient(self) -> bool:
        """Return True if no request waits in vain."""
        return not any(isinstance(each, HangUp) or getattr(each, "patience", 0.0) for each in self.actions)

    def __str__(self) -> str:
        shown = [f"{self.seats} seats, {self.queuing}, by {self.distinguishers}, {self.filled} seats taken at first"]
        number = self.filled
        for tick, each in enumerate(self.actions):
            what = str(each)
            if isinstance(each, Arrive):
                what, number = f"{number}: {what}", number + 1
            shown.append(f"      tick {tick}: {what}")
        return "\n".join([*shown, "      then the first that has a seat is answered, until none is left"])


def determined(random: Random, blank: Script) -> tuple[Script, list[Event]]:
    """A script for the level of the blank one, and what comes of it. Raises RuntimeError if none can be found."""
    for attempt in range(_SCRIPTS):
        longest = 26 - 20 * attempt // _SCRIPTS
        script = replace(blank, filled=_filled(random, blank), actions=tuple(_actions(random, blank, longest)))
        first = outcome(script, Random("0"), 0.0)
        if first is not None and all(
            outcome(script, Random(f"{number}"), _LATE * (number % 4 + 1) / 4) == first for number in range(_TRIES)
        ):
            return script, first
    raise RuntimeError(f"no load of {blank.queuing} with {blank.seats} seats is determined")


def _filled(random: Random, blank: Script) -> int:
    return max(blank.seats - random.randint(1, 4), 0) if blank.seats > 4 else 0


def _actions(random: Random, blank: Script, longest: int) -> Iterator[Action]:
    arrivals = random.choice((0.5, 0.6, 0.75))
    wide = 0.3 if random.random() < 0.4 else 0.0
    impatient = 0.25 if random.random() < 0.4 else 0.0
    for _ in range(random.randint(min(longest, 10), longest)):
        what = random.random()
        if what < arrivals:
            namespace = random.randint(1, 2) if random.random() < wide else 0
            patience = random.randint(1, 6) + 0.5 if random.random() < impatient else 0.0
            schema = random.choice((0, 0, 1))
            yield Arrive(schema, random.randrange(len(blank.users[schema])), namespace, patience)
        elif what < arrivals + 0.2:
            yield Release(random.choice((0, 0, 1, 2, 5)))
        elif what < arrivals + 0.27:
            yield HangUp(random.choice((0, 1, 3)))
        else:
            yield Rest()


class _Model:
    """A level, and the requests that have come to it."""

    def __init__(self, script: Script, random: Random) -> None:
        self._script = script
        self._random = random
        self.now = 0.0
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()
        self._seats = QueueSet(lambda: self.now, self.later)
        self._seats.configure(script.queuing, script.seats)
        queuing = script.queuing
        self._widest = most_seats(script.seats, queuing.hand) if queuing.queues else 0
        self.executing: dict[int, Ticket] = {}
        self.waiting: dict[int, Ticket] = {}
        self._until: dict[int, float] = {}
        self.events: list[Event] = []
        self.is_doubtful = False

    def later(self, seconds: float, work: Callable[[], object]) -> None:
        heapq.heappush(self._timers, (self.now + seconds, next(self._numbers), work))

    def advance(self, moment: float) -> None:
        while self._timers and self._timers[0][0] <= moment:
            self.now, _, work = heapq.heappop(self._timers)
            work()
        self.now = moment

    def arrive(self, number: int, request: Arrive) -> None:
        script, queuing = self._script, self._script.queuing
        by = script.distinguishers[request.schema]
        user = script.users[request.schema][request.user]
        told_apart = {"": "", "ByUser": user, "ByNamespace": script.namespaces[request.namespace]}[by]
        flow = flow_hash(script.names[request.schema], told_apart if queuing.queues > 1 else "")
        hand = deal(queuing.queues, queuing.hand, flow) if queuing.queues else ()
        estimate = estimate_write(WATCHES[request.namespace], self._widest)
        ticket = self._seats.start(SchemaCounts(), hand, None, self.now, *estimate)
        if ticket is None:
            self._tell("429", number)
            return
        if request.patience:
            self._until[number] = self.now + _PART * request.patience * TICK
        if ticket.started >= 0.0:
            self._seated(number, ticket)
            return
        self.waiting[number] = ticket
        ticket.decided = lambda: self._seated(number, ticket)
        if request.patience:
            self.later(request.patience * TICK, lambda: self.give_up(number, "429"))

    def _seated(self, number: int, ticket: Ticket) -> None:
        self.waiting.pop(number, None)
        self.executing[number] = ticket
        self._tell("seat", number)

    def give_up(self, number: int, told: str = "") -> None:
        ticket = self.waiting.get(number)
        if ticket is None:
            return
        before = len(self.events)
        del self.waiting[number]
        self._seats.give_up(ticket)
        # upstream lets in others with the next request that comes or goes
        self.is_doubtful |= len(self.events) > before
        if told:
            self._tell(told, number)

    def release(self, number: int) -> None:
        ticket = self.executing.pop(number)
        self.is_doubtful |= self._until.get(number, self.now + 9.0) < self.now + 1.0
        self._seats.finish(ticket)

    def _tell(self, what: str, number: int) -> None:
        self.events.append((max(int((self.now - FILLING) / TICK), 0), what, number))


def outcome(script: Script, random: Random, late: float) -> list[Event] | None:
    """Return the events of a script if actions are noticed up to `late` seconds late; None if they are not determined."""
    model = _Model(script, random)
    number = 0
    for number in range(script.filled):
        model.advance(model.now + 0.015 + random.uniform(0.0, 2 * late / script.filled))
        model.arrive(number, Arrive(0, 0, 0))
    number = script.filled
    for tick in range(1, _LONGEST):
        model.advance(FILLING + tick * TICK + 0.001 + random.uniform(0.0, late))
        action = script.actions[tick - 1] if tick <= len(script.actions) else Release(0)
        if isinstance(action, Arrive):
            model.arrive(number, action)
            number += 1
        elif isinstance(action, Release) and model.executing:
            at_gate = sorted(model.executing)
            model.release(at_gate[action.which % len(at_gate)])
        elif isinstance(action, HangUp) and model.waiting:
            queued = sorted(model.waiting)
            model.give_up(queued[action.which % len(queued)])
        if tick > len(script.actions) and not model.executing and not model.waiting:
            return None if model.is_doubtful else sorted(model.events)
    return None
