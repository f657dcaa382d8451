"""Yielding: a coroutine that goes through much gives the event loop back once it has worked for a while.

Use `async for item in unhurried(items)`, or a `Turn` where the loop is not over items. Both count time, not items: a
slice lasts some milliseconds, then others have the event loop. Time in which the coroutine waited for something is not
counted, as others had the loop meanwhile.

Slow loops do not add up: one slice of users is done in one turn of the event loop. Users (of the accounts of
`work.offloading`) have their turns one after the other, and the loops of one user go on in the order they came. One
slice of what the server does for itself is done besides. So a hundred slow lists keep a request waiting no longer than
one, and an index that all of them need is made meanwhile.

A slice holds nothing. A coroutine that is cancelled or raises between two slices has nothing to give back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from time import monotonic
from typing import ClassVar, Final, TypeVar
from weakref import WeakKeyDictionary

from steersman.work.offloading import SERVER, Account, current

T = TypeVar("T")

BEGINNING: Final = 0.0005
"""Seconds that anybody may work before the event loop is looked at; twice that before a slice is waited for."""
SLICE: Final = 0.004
"""Seconds of a slice."""


class Turn:
    """Time for which a coroutine may work until others have the event loop. It begins when it is made."""

    __slots__ = ("_number", "_until")

    def __init__(self) -> None:
        self._number = -1
        """The turn of the event loop in which the time began, as `_Pace` counts; -1 for an unknown one."""
        self._until = monotonic() + BEGINNING

    async def give(self) -> None:
        """Let others have the event loop if the time is over. For between two parts of the work, each of them short."""
        if monotonic() < self._until:
            return
        pace = _Pace.of(asyncio.get_running_loop())
        number = pace.number()
        if number != self._number:  # others have had the loop since the time began, or that is not known
            self._number, self._until = number, monotonic() + BEGINNING
            return
        await pace.next_slice(1, current().user)
        self._number, self._until = pace.number(), monotonic() + SLICE


async def unhurried(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, while others have the event loop whenever what is done with them has taken a while."""
    turn = Turn()
    for item in items:
        if monotonic() >= turn._until:  # cheaper for each item than to await
            await turn.give()
        yield item


async def next_slice(few: int = 1, account: Account | None = None) -> None:
    """Return when a slice may be done of which `few` are done in one turn of the event loop.

    For work that comes in slices by itself, such as pieces of a list. `account` is that of the work if another one is
    bound here.
    """
    await _Pace.of(asyncio.get_running_loop()).next_slice(few, (account or current()).user)


def in_turns(some: Callable[[], bool], seconds: float = SLICE) -> None:
    """Call `some` until it returns False: in each turn of the event loop once at least, and for so many seconds.

    For callbacks, which cannot await. It begins at once.
    """
    until = monotonic() + seconds
    while some():
        if monotonic() >= until:
            asyncio.get_running_loop().call_soon(in_turns, some, seconds)
            return


class FewAtOnce:
    """A gate that lets so many tasks go on in a turn of the event loop. Each does little until it comes again.

    The tasks of one user go on in the order they came, and users have their turns one after the other.
    """

    __slots__ = ("_few", "_left", "_scheduled", "_waiting")

    def __init__(self, few: int) -> None:
        self._few = self._left = few
        self._scheduled = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By users, the next one first."""

    async def turn(self, user: str = SERVER) -> None:
        """Return when it is the caller's turn: at once if there are fewer in this turn of the event loop."""
        loop = asyncio.get_running_loop()
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._begin, loop)
        if self._left:
            self._left -= 1
            return
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(user, deque()).append(mine)
        await mine

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a turn of the event loop."""
        self._left = self._few
        while self._left and (mine := self._next()) is not None:
            mine.set_result(None)
            self._left -= 1
        self._scheduled = self._left < self._few
        if self._scheduled:
            loop.call_soon(self._begin, loop)

    def _next(self) -> asyncio.Future[None] | None:
        """Take the next task that still waits."""
        while self._waiting:
            user = next(iter(self._waiting))
            line = self._waiting.pop(user)
            while line:
                mine = line.popleft()
                if not mine.done():
                    if line:
                        self._waiting[user] = line  # behind the others
                    return mine
        return None


class _Pace:
    """The slices of an event loop, and the number of its turn."""

    __slots__ = ("_few", "_is_counting", "_number")

    _all: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, _Pace]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._few: dict[tuple[int, bool], FewAtOnce] = {}
        """By the slices in one turn, and whether they are of the server itself."""
        self._number = 0
        self._is_counting = False

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> _Pace:
        found = cls._all.get(loop)
        if found is None:
            found = cls._all[loop] = cls()
        return found

    def number(self) -> int:
        """Return the number of this turn. Turns are told apart from the one in which this was called last."""
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._count)
        return self._number

    def _count(self) -> None:
        self._number += 1
        self._is_counting = False

    async def next_slice(self, few: int, user: str) -> None:
        key = few, user == SERVER
        gate = self._few.get(key)
        if gate is None:
            gate = self._few[key] = FewAtOnce(few)
        await gate.turn(user)
