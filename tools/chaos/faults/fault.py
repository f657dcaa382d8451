"""Each fault is done, lasts for a while, and is undone."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from steersman.testing import ServerNotReady
from tools.chaos.members import Member
from tools.chaos.servers import Server

_ATTEMPTS: Final = 5

Step = Callable[[], Awaitable[None]]


@dataclass
class Fault:
    """One thing that goes wrong, with which of its parts."""

    text: str
    do: Step
    undo: Step
    starts_server: bool = False
    """True if undoing the fault starts a server, which needs its storage."""
    is_alone: bool = False
    """True if no other fault may be active: the fault needs a majority of etcd."""
    found: str = ""
    """Message for the time when the fault is undone."""


Makers = Mapping[str, Callable[[], Fault]]
"""Faults by name; each call chooses anew to whom they are done."""


class Pulses:
    """Something that goes on and off, again and again, while a fault lasts."""

    def __init__(self, on: Step, off: Step, seconds: Callable[[], tuple[float, float]]) -> None:
        """`seconds` says for how long it is on and off, each time."""
        self._on, self._off, self._seconds = on, off, seconds
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        while not self._over.is_set():
            on, off = self._seconds()
            try:
                await self._on()
                await self._pause(on)
            finally:
                await self._off()
            await self._pause(off)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()

    async def do(self) -> None:
        """Begins."""
        self._task = asyncio.ensure_future(self._run())

    async def undo(self) -> None:
        """Ends; it is off. Raises what one of its steps raised."""
        self._over.set()
        if self._task is not None:
            await self._task


async def restart(server: Server) -> None:
    """Starts a server again that has ended. Raises ServerNotReady if it does not come up again and again."""
    for attempt in range(_ATTEMPTS):
        if server.running:
            return
        try:
            await asyncio.to_thread(server.start, 60.0)
        except ServerNotReady:
            if attempt == _ATTEMPTS - 1:
                raise


async def nothing() -> None:
    return


def in_thread(step: Callable[[], object]) -> Step:
    """A step that blocks."""

    async def run() -> None:
        await asyncio.to_thread(step)

    return run


def sends(process: Member | Server, number: signal.Signals) -> Step:
    async def run() -> None:
        process.signal(number)

    return run


async def play(makers: Makers, chance: random.Random, longest: float, rest: float, note: Callable[[str], None]) -> None:
    """One fault after another, some two at a time, until cancelled: then what is wrong is undone."""
    names = list(makers)
    while True:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * rest)
        chosen = [makers[each]() for each in chance.sample(names, min(len(names), 2 if chance.random() < 0.2 else 1))]
        chosen = [each for each in chosen if each.is_alone][:1] or chosen
        seconds = chance.uniform(0.2, 1.0) * longest
        note(f"{' and '.join(each.text for each in chosen)}, for {seconds:.1f} s")
        undone = asyncio.ensure_future(_one_round(chosen, seconds, note))
        try:
            await asyncio.shield(undone)
        except asyncio.CancelledError:
            await undone  # what is begun is undone: the end of a run needs all of them
            raise


async def _one_round(chosen: Sequence[Fault], seconds: float, note: Callable[[str], None]) -> None:
    for each in chosen:
        await each.do()
    await asyncio.sleep(seconds)
    for each in sorted(chosen, key=lambda fault: fault.starts_server):
        await each.undo()
        if each.found:
            note(f"  {each.found}")
