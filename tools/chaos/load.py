"""Everybody who asks something of the servers meanwhile, and what has to be true of it in the end."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from tools.chaos.allocators import SERVICES, Allocator, Holding, given_twice, there
from tools.chaos.asking import Answer, Asker, Violation, be_patient
from tools.chaos.electors import Elector, overlaps
from tools.chaos.followers import Follower, listed, missed
from tools.chaos.history import History
from tools.chaos.keepers import EVENTS, Keeper, lost
from tools.chaos.writers import NAMESPACE, PATH, Writer
from tools.soak.http_client import Endpoint

_ELECTORS: Final = 3
_ALLOCATORS: Final = 3
_KEEPERS: Final = 2
_PATIENT: Final = 2
_SECRETS: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"
_CATCH_UP: Final = 60.0
"""Seconds in which everybody has to know what is there."""


class Load:
    """Writers, informers, candidates, allocators and keepers of events on all servers."""

    def __init__(self, endpoints: Sequence[Endpoint], *, writers: int, informers: int, pause: float, seed: int) -> None:
        """Each writer waits `pause` seconds between two requests, on average."""
        self.counts: Counter[str] = Counter()
        self.history = History()
        self.longest = [0.0]
        """Seconds that a patient client has waited at most."""
        self._endpoints = endpoints
        self._chance = random.Random(seed)
        self._askers: list[Asker] = []
        self._pause = pause
        self._first = self._asker()
        self._writers = [Writer(self._asker(), self.history) for _ in range(writers)]
        self._followers = [Follower(self._asker()) for _ in range(informers)]
        self._electors = [Elector(self._asker(), f"candidate-{number}") for number in range(_ELECTORS)]
        self._allocators = [Allocator(self._asker(), f"s{number}") for number in range(_ALLOCATORS)]
        self._keepers = [Keeper(self._asker(), f"e{number}") for number in range(_KEEPERS)]

    def _asker(self) -> Asker:
        asker = Asker(self._endpoints, self.counts, random.Random(self._chance.random()))
        self._askers.append(asker)
        return asker

    async def prepare(self) -> None:
        """Makes the namespace. Raises Violation."""
        answer = await self._first.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        if not isinstance(answer, Answer) or answer.status != 201:
            raise Violation(f"the namespace was answered {answer}")

    async def run(self, seconds: float, between: Callable[[], Awaitable[None]]) -> None:
        """Loads the servers for so long, then does what is `between`, and looks whether everybody knows what is there.

        Raises Violation, in an ExceptionGroup.
        """
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            writing = [group.create_task(each.run(self._pause, stop)) for each in self._writers]
            writing += [group.create_task(each.run(stop)) for each in self._allocators]
            writing += [group.create_task(each.run(stop)) for each in self._keepers]
            others = [group.create_task(each.run()) for each in self._electors]
            others += [group.create_task(each.run()) for each in self._followers]
            others += [group.create_task(be_patient(self._asker(), _SECRETS, self.longest)) for _ in range(_PATIENT)]
            await asyncio.sleep(seconds)
            stop.set()
            await asyncio.gather(*writing)
            await between()
            objects = listed((await self._everything(PATH))["items"])
            for follower in self._followers:
                await follower.agree(objects, _CATCH_UP)
                follower.end_stretch()
            for task in others:
                task.cancel()

    async def _everything(self, path: str) -> Any:
        """Return all objects of a path. Raises Violation if no server answers soon."""
        for _ in range(60):
            answer = await self._first.ask("GET", path)
            if isinstance(answer, Answer) and answer.status == 200:
                return answer.body
            await asyncio.sleep(1)
        raise Violation(f"GET {path} is not answered though nothing is wrong any more: {answer}")

    async def missing(self) -> list[str]:
        """Return the faults of the final objects. Raises Violation if no server lists them."""
        kept = [name for each in self._keepers for name in each.kept]
        wrong = there((await self._everything(SERVICES))["items"], self._holdings())
        return wrong + lost((await self._everything(EVENTS))["items"], kept)

    def _holdings(self) -> list[Holding]:
        return [each for allocator in self._allocators for each in allocator.holdings]

    def judged(self) -> list[str]:
        """Return violations besides those in the history, also of a run that was broken off."""
        wrong = missed((each for follower in self._followers for each in follower.stretches), self.history)
        wrong += overlaps(reign for elector in self._electors for reign in elector.reigns)
        wrong += given_twice(self._holdings())
        written = self.history.values()
        wrong += [
            f"a read of some past state found {key} with {value} at {version}, which nobody wrote"
            for writer in self._writers
            for key, value, version in writer.cached
            if (key, value) not in written
        ]
        return wrong

    async def close(self) -> None:
        for asker in self._askers:
            await asker.close()
