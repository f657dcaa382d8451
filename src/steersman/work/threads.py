"""The worker threads beside the event loop, and whose turn it is in them.

Turns are shared by the processor time that users have had, not by how many steps they ask for: a start-time fair queue,
whose virtual time is seconds of a thread's processor time. A step that takes long lets others be done in between where
its code says that it may (`give_way`).
"""

from __future__ import annotations

import asyncio
import gc
import sys
from bisect import insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from math import inf
from operator import attrgetter
from threading import Lock, Timer, local
from time import monotonic, thread_time
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from steersman.work.memory import give_memory_back

R = TypeVar("R")
T = TypeVar("T")

MAX_WAITING: Final = 64
"""Steps of one user's requests that may wait; while they do, no further large request of the user is begun."""
_WAITING_IN_ALL: Final = 256
"""What users share when several wait at once: each may have as many of these as the others."""
_LEAST_WAITING: Final = 4
"""What each may have however many they are."""

_SLICE: Final = 0.02
"""Seconds of a step after which those of others may be done in between."""
_LONG: Final = 0.1
"""Seconds of a step that does not give way after which another is begun beside it."""
_AT_ONCE: Final = 2
_MOST_GIVEN_UP: Final = 4
"""Steps that nobody waits for any more, and that have not given way since, beside which as many others are done."""
_MANY: Final = 16
"""Items of a list in which it is looked, before each, whether to give way: lists of lists may be as many each."""
_PAUSED: Final = 6
"""Steps that may be paused at once: each keeps a thread, and all that it has made, which may be 60 MB. If there are
more, those that are done do not give way."""
_REST: Final = 1.0
"""Seconds after a step in which what it made is used and forgotten."""
_LOOK_EVERY: Final = 1.0
"""Seconds after which threads that do not rest look whether garbage can be collected at little cost."""
_FEW: Final = 20_000
"""Objects that no collection has walked: walking them takes 5 ms at most, with the interpreter held."""
_COLLECTION_AT_LAST: Final = 300.0
"""Seconds after which they are walked however many they are."""
_TRIM_EVERY: Final = 10.0
"""Seconds between two times at which threads that rest give memory back."""
_SWITCH_INTERVAL: Final = 0.0005
"""Seconds after which a thread gives the interpreter to the loop while it works; otherwise each turn of the loop would
wait for the usual 5 ms."""

_SERVER: Final = ""
"""The user of what belongs to no user."""


class _GivenUp(BaseException):
    """Ends a paused step for whose result nobody waits any more."""


class _Step:
    """A piece of work that waits for its turn or is being done; `number` is that of the request it belongs to."""

    __slots__ = ("began", "done", "given_up", "number", "resumed", "threads", "used", "user", "work")

    def __init__(self, threads: WorkerThreads, user: _User, number: int, work: Callable[[], Any]) -> None:
        self.threads = threads
        self.user = user
        self.number = number
        self.work = work
        self.done: Future[Any] = Future()
        self.resumed: Lock | None = None
        """What the thread of a paused step waits for."""
        self.given_up = False
        self.began = 0.0
        self.used = 0.0
        """Where the clocks stood when this slice of the step began: that of the wall, and that of its thread."""


class _User:
    """Whose steps wait or are done; `used` is the virtual time at which the next of them begins."""

    __slots__ = ("in_line", "name", "running", "used", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.used = -inf if name == _SERVER else 0.0
        self.waiting: list[_Step] = []
        """By the number of the request."""
        self.running = 0
        self.in_line = False

    def put(self, step: _Step) -> None:
        insort(self.waiting, step, key=_number)

    def take(self, step: _Step) -> None:
        self.waiting.remove(step)


_number: Final = attrgetter("number")


class _Here(local):
    """What this thread is at."""

    step: _Step | None = None


_here: Final = _Here()


_awaited: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, int]] = WeakKeyDictionary()


def awaited(loop: asyncio.AbstractEventLoop) -> int:
    """Return how many steps in worker threads somebody on this loop waits for."""
    return _awaited.get(loop, 0)


def give_way() -> None:
    """To be called now and then by work that may take long: lets others do theirs, if it is done in a worker thread.

    Costs some 50 ns on the loop, so it is for each item of a list of objects rather than for each value.
    """
    step = _here.step
    if step is not None and monotonic() > step.began + _SLICE:
        step.threads.give_way(step)


def paced(items: Collection[T]) -> Iterable[T]:
    """The items, giving way before each if they are many."""
    return items if len(items) < _MANY else _paced(items)


def _paced(items: Collection[T]) -> Iterator[T]:
    for item in items:
        give_way()
        yield item


class WorkerThreads:
    """A thread that takes turns with the loop, as what it does is Python, and one for when a step of it takes long.

    More at once would do no more, and keep the loop waiting. Those of paused steps only wait.

    The next step is one of the user who has had the least time. Who is new, or has had nothing to do, begins with what
    the one has had whose turn it is, so that nothing is saved up; nobody has both threads. Of one user's steps those
    of the request that came first are done first, so that requests are finished before others are begun, and few large
    objects are alive. What belongs to no user comes before everything else.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE + _PAUSED + _MOST_GIVEN_UP, thread_name_prefix="worker")
        self._lock = Lock()
        self.numbers = count()
        """Of requests, in the order in which they came."""
        self._users: dict[str, _User] = {}
        """Those who have steps, and who have had more time than others while these had some."""
        self._most_users = 64
        self._line: list[tuple[float, int, _User]] = []
        """A heap of those whose turn may come: by the time they have had, then by when they got in line."""
        self._places = count()
        self._virtual_time = 0.0
        self._running: list[_Step] = []
        self._begun: deque[_Step] = deque()
        self._paused: set[_Step] = set()
        self._looked_at_by: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._interpreter = _Interpreter()

    async def run(self, name: str, number: int, work: Callable[[], R]) -> R:
        """What `work` for the request of this number gives or raises, when it was its turn."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the worker threads are closed")
            step = self._put(name, number, work)
            self._have_done(self._next())
            if self._line:
                self._look_again(loop)
        _awaited[loop] = _awaited.get(loop, 0) + 1
        try:
            result: R = await asyncio.wrap_future(step.done)
        except BaseException:
            self._drop(step)
            del step  # as in `_do`
            raise
        finally:
            _awaited[loop] -= 1
        return result

    def has_room(self, name: str) -> bool:
        """Whether this user has not as much waiting as one may."""
        with self._lock:
            user = self._users.get(name)
            if user is None or not user.waiting:
                return True
            users = sum(1 for each in self._users.values() if each.waiting)
            return len(user.waiting) < min(MAX_WAITING, max(_LEAST_WAITING, _WAITING_IN_ALL // users))

    def close(self) -> None:
        """Takes no more work; what has not begun is not done, and what has ends where it gives way."""
        with self._lock:
            self._is_closed = True
            for step in (*self._running, *self._paused):
                step.given_up = True
            given_up = [step for user in self._users.values() for step in user.waiting if step not in self._paused]
            for step in given_up:
                step.user.take(step)
            for step in tuple(self._paused):
                self._begin(step)
                self._resume(step)
            self._threads.shutdown(wait=False, cancel_futures=True)
        self._interpreter.close()
        for step in given_up:
            step.done.cancel()

    # Whose turn it is; all of this with the lock

    def _put(self, name: str, number: int, work: Callable[[], Any]) -> _Step:
        user = self._users.get(name)
        if user is None:
            if len(self._users) >= self._most_users:
                self._forget_users()
            user = self._users[name] = _User(name)
        if name != _SERVER and not user.waiting and not user.running:
            user.used = max(user.used, self._virtual_time)
        step = _Step(self, user, number, work)
        user.put(step)
        self._line_up(user)
        return step

    def _forget_users(self) -> None:
        """Forgets those who have nothing to do, and have not had more time than who is next."""
        self._users = {
            name: user
            for name, user in self._users.items()
            if user.waiting or user.running or user.used > self._virtual_time
        }
        self._most_users = 64 + 2 * len(self._users)

    def _forget_all(self) -> None:
        """Forgets everybody, where nobody has anything to do: who had more time took it from no one."""
        self._virtual_time = max(self._virtual_time, *(user.used for user in self._users.values()))
        self._users.clear()
        self._line.clear()

    def _line_up(self, user: _User) -> None:
        if user.waiting and not user.in_line and (not user.running or user.name == _SERVER):
            heappush(self._line, (user.used, next(self._places), user))
            user.in_line = True

    def _first(self) -> _User | None:
        """The user whose turn it is."""
        while self._line:
            user = self._line[0][2]
            if user.waiting:
                return user
            heappop(self._line)  # what waited was given up
            user.in_line = False
        return None

    def _next(self) -> _Step | None:
        """Begins the step whose turn it is, if nothing is done, or only what does not give way.

        A paused one is resumed; another is given back, for a thread to do.
        """
        awaited = [step for step in self._running if not step.given_up]
        if len(awaited) >= _AT_ONCE or len(self._running) >= _AT_ONCE + _MOST_GIVEN_UP:
            return None
        if any(monotonic() < step.began + _LONG for step in awaited):
            return None
        user = self._first()
        if user is None:
            return None
        heappop(self._line)
        user.in_line = False
        self._virtual_time = max(self._virtual_time, user.used)
        step = user.waiting[0]
        self._begin(step)
        self._line_up(user)
        if step in self._paused:
            self._resume(step)
            return None
        return step

    def _begin(self, step: _Step) -> None:
        step.user.take(step)
        step.user.running += 1
        self._running.append(step)
        step.began = monotonic()

    def _end(self, step: _Step) -> None:
        step.user.running -= 1
        self._running.remove(step)

    def _charge(self, step: _Step) -> None:
        """Adds what a step has used since it was last charged; in its thread."""
        now = thread_time()
        step.user.used += now - step.used
        step.used = now

    def _resume(self, step: _Step) -> None:
        self._paused.discard(step)
        assert step.resumed is not None
        step.resumed.release()

    def _have_done(self, step: _Step | None) -> None:
        """Gives a step to another thread than this one."""
        if step is not None:
            self._begun.append(step)  # not an argument, which the thread would keep while it does others
            self._threads.submit(self._serve)

    # On the loop

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        """Sees to it that what waits is begun beside a step that takes long."""
        if self._looked_at_by is not loop:
            self._looked_at_by = loop
            loop.call_later(_LONG, self._look)

    def _look(self) -> None:
        with self._lock:
            loop, self._looked_at_by = self._looked_at_by, None
            self._have_done(self._next())
            if self._line and loop is not None:
                self._look_again(loop)

    def _drop(self, step: _Step) -> None:
        """Forgets a step that nobody waits for any more, and what it would have worked on; one that has begun ends
        where it gives way."""
        with self._lock:
            step.given_up = True
            if step in step.user.waiting and step not in self._paused:
                step.user.take(step)

    # In the threads

    def _serve(self) -> None:
        step: _Step | None = self._begun.popleft()
        while step is not None:
            step = self._do(step)

    def _do(self, step: _Step) -> _Step | None:
        """Does a step; gives that to do next, if there is one."""
        result, error = None, None
        begins = step.done.set_running_or_notify_cancel()
        self._interpreter.works()
        step.used = thread_time()
        _here.step = step
        try:
            if begins:
                result = step.work()
        except BaseException as raised:
            error = raised
        _here.step = None
        with self._lock:
            self._charge(step)
            self._end(step)
            self._line_up(step.user)
            following = self._next()
            if not self._running:
                self._forget_all()
        self._interpreter.worked()
        if isinstance(error, _GivenUp):
            error = CancelledError()  # for whoever waits yet, as the threads were closed
        if error is not None:
            step.done.set_exception(error)
        elif begins:
            step.done.set_result(result)
        del step, error  # an error knows this frame, and would never go if this frame knew it
        return following

    def give_way(self, step: _Step) -> None:
        """Pauses a step while it is the turn of another user's. Raises _GivenUp if nobody waits for it any more."""
        if step.given_up:
            raise _GivenUp
        self._interpreter.collect()
        with self._lock:
            self._charge(step)
            first = self._first()
            if first is None or first.used >= step.user.used or len(self._paused) >= _PAUSED:
                step.began = monotonic()
                return
            self._end(step)
            step.resumed = Lock()
            step.resumed.acquire()
            self._paused.add(step)
            step.user.put(step)
            self._line_up(step.user)
            self._have_done(self._next())
        self._interpreter.worked()
        step.resumed.acquire()
        self._interpreter.works()
        step.used = thread_time()
        if step.given_up:
            raise _GivenUp


class _SwitchInterval:
    """The interpreter's switch interval, short while worker threads of any server in this process work."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._working = 0
        self._usual = 0.0

    def shorten(self) -> None:
        """Count one more thread that works."""
        with self._lock:
            self._working += 1
            if self._working == 1:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_INTERVAL)

    def restore(self) -> None:
        """Count one thread less; the last restores the interval."""
        with self._lock:
            self._working -= 1
            if not self._working:
                sys.setswitchinterval(self._usual)


_switch_interval: Final = _SwitchInterval()


class _Interpreter:
    """Garbage collection while the threads of one server work, and what is done once they rest.

    Garbage is collected only at good moments until the worker threads have rested: a
    collection walks all that has been made since the last one and is still alive, with the interpreter held. Worker
    threads make nothing that has cycles, and so nothing that needs one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._working = 0
        self._holds_collection = False
        self._collected = self._looked = 0.0
        self._ended = self._trimmed = 0.0
        self._resting: Timer | None = None
        self._is_closed = False

    def works(self) -> None:
        _switch_interval.shorten()
        with self._lock:
            self._working += 1
            if not self._is_closed and not self._holds_collection and gc.isenabled():
                gc.disable()
                self._holds_collection = True
                self._collected = self._looked = monotonic()

    def worked(self) -> None:
        self.collect()
        _switch_interval.restore()
        with self._lock:
            self._working -= 1
            self._ended = monotonic()
            self._rest_soon()

    def collect(self) -> None:
        """Has the garbage collected that others make, at a moment when few objects of the threads are alive."""
        now = monotonic()
        if not self._holds_collection or now < self._looked + _LOOK_EVERY:
            return
        self._looked = now
        if now > self._collected + _COLLECTION_AT_LAST or _are_few_young():
            self._collected = now
            gc.collect(0)

    def _rest_soon(self) -> None:
        # not a timer of the loop, which may end before: the process is to be left as it was
        if self._holds_collection and self._resting is None:
            self._resting = Timer(_REST, self._rest)
            self._resting.daemon = True
            self._resting.start()

    def _rest(self) -> None:
        """Lets garbage be collected if nothing has been done of late."""
        with self._lock:
            self._resting = None
            if self._working or monotonic() < self._ended + _REST:
                self._rest_soon()
                return
            self._let_collect()
        if monotonic() > self._trimmed + _TRIM_EVERY:
            self._trimmed = monotonic()
            give_memory_back()

    def _let_collect(self) -> None:
        if self._holds_collection:
            gc.enable()
            self._holds_collection = False

    def close(self) -> None:
        with self._lock:
            self._is_closed = True  # a step that is begun yet, as the threads end, holds nothing
            self._let_collect()
            if self._resting is not None:
                self._resting.cancel()


def _are_few_young() -> bool:
    """Whether few objects have not been walked. The count alone is too low where older ones have been forgotten."""
    return gc.get_count()[0] < _FEW and len(gc.get_objects(0)) < _FEW
