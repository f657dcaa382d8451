"""Parts start in order, get their dependencies by type, and end in reverse order, even if the start fails midway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from steersman.work.parts import Part, Parts, offered


class Log(list[str]):
    """Events of the test, in order."""


class LoggedPart(Part):
    """A part that logs its start and end."""

    log: Log

    async def start(self, ending: AsyncExitStack) -> None:
        name = type(self).__name__
        ending.callback(self.log.append, f"{name} ends")
        await self.work()
        self.log.append(f"{name} starts")

    async def work(self) -> None:
        await asyncio.sleep(0)


def numbered(count: int) -> tuple[type[LoggedPart], ...]:
    return tuple(type(f"Part{number}", (LoggedPart,), {}) for number in range(count))


def ended(count: int) -> Iterator[str]:
    return (f"Part{number} ends" for number in reversed(range(count)))


async def test_parts_start_in_order_and_end_in_reverse() -> None:
    log = Log()
    async with AsyncExitStack() as ending:
        await Parts(log).start(numbered(3), ending)
        assert log == [f"Part{number} starts" for number in range(3)]
        log.clear()
    assert log == [*ended(3)]


async def test_the_fifth_of_twelve_fails() -> None:
    class Fails(LoggedPart):
        async def work(self) -> None:
            raise OSError("no room")

    log = Log()
    parts = numbered(12)
    started = Parts(log)
    with pytest.raises(OSError, match="no room"):
        async with AsyncExitStack() as ending:
            await started.start((*parts[:4], Fails, *parts[5:]), ending)
    assert log[4:] == ["Fails ends", *ended(4)]
    assert started.find(parts[3]) is not None
    assert started.find(Fails) is None


@pytest.mark.parametrize("waits", range(12))
async def test_a_start_is_cancelled_in_the_middle(waits: int) -> None:
    begun = asyncio.Event()

    class Waits(LoggedPart):
        async def work(self) -> None:
            begun.set()
            await asyncio.Event().wait()

    log = Log()
    parts = numbered(12)

    async def start() -> None:
        async with AsyncExitStack() as ending:
            await Parts(log).start((*parts[:waits], Waits, *parts[waits:]), ending)

    starting = asyncio.ensure_future(start())
    await begun.wait()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert log[waits:] == ["Waits ends", *ended(waits)]


class Clock(Part):
    """A part that others depend on."""

    now: float = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        self.now = 7.0


class Calendar(Part):
    """A part with one required and one optional dependency."""

    clock: Clock
    log: Log | None
    seen: float = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        self.seen = self.clock.now


async def test_a_part_is_given_what_it_needs() -> None:
    parts, log = Parts(Log()), None
    async with AsyncExitStack() as ending:
        await parts.start((Clock, Calendar), ending)
    assert parts[Calendar].seen == 7.0
    assert parts[Calendar].log is parts[Log]
    async with AsyncExitStack() as ending:
        parts = Parts()
        await parts.start((Clock, Calendar), ending)
    assert parts[Calendar].log is log


async def test_a_subclass_stands_for_a_part() -> None:
    class Late(Clock):
        async def start(self, ending: AsyncExitStack) -> None:
            self.now = 23.0

    parts = Parts()
    async with AsyncExitStack() as ending:
        await parts.start((Late, Calendar), ending)
    assert parts[Calendar].seen == 23.0
    assert isinstance(parts[Clock], Late)


async def test_what_is_needed_and_not_there_is_named() -> None:
    with pytest.raises(LookupError, match="Calendar needs Clock, which no earlier part provides"):
        async with AsyncExitStack() as ending:
            await Parts().start((Calendar, Clock), ending)
    with pytest.raises(LookupError, match="no part of the type Clock has been started"):
        Parts()[Clock]
