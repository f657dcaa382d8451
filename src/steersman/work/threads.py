"""Worker threads, and the fair queue that decides whose piece of work runs next in them.

Users share the threads by the processor time that their work has used, not by the number of pieces: a start-time fair
queue, whose virtual time is seconds of a thread's processor time. A piece of work that takes long can be paused for the
work of others where its code calls `give_way`.
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
"""Steps of one user's requests that may wait. While so many wait, no further large request of the user is started."""
_WAITING_IN_ALL: Final = 256
"""Waiting steps that are divided equally among the users who have waiting steps."""
_LEAST_WAITING: Final = 4
"""Waiting steps that each user may have, however many users there are."""

SLICE: Final = 0.02
"""Seconds of a step after which it may be paused for steps of other users."""
_LONG: Final = 0.1
"""Seconds without `give_way` after which another step is started beside a running one."""
_AT_ONCE: Final = 2
"""Steps with a waiter that may run at once."""
_MOST_GIVEN_UP: Final = 4
"""Abandoned steps that may run at once, besides the others, until they reach `give_way`."""
_MANY: Final = 16
"""Length of a list from which `paced` calls `give_way` before each item. Nested lists may be as long on each level."""
_PAUSED: Final = 6
"""Steps that may be paused at once: each keeps a thread and all that it has created, which may be 60 MB. While so many
are paused, running steps are not paused."""
_REST: Final = 1.0
"""Seconds after a step in which its results are used and freed."""
_LOOK_EVERY: Final = 1.0
"""Seconds between two checks, in threads that never rest, for a cheap moment to collect garbage."""
_FEW: Final = 20_000
"""Objects of the youngest generation that are cheap to collect: 5 ms at most, with the interpreter lock held."""
_COLLECTION_AT_LAST: Final = 300.0
"""Seconds after which garbage is collected whatever the number of objects."""
_TRIM_EVERY: Final = 10.0
"""Seconds between two times at which resting threads give memory back to the system."""
_SWITCH_INTERVAL: Final = 0.0005
"""Seconds after which a working thread hands the interpreter lock to the event loop. With Python's default each
iteration of the loop would wait for 5 ms."""

_SERVER: Final = ""
"""User name of work that belongs to no user."""


class _GivenUp(BaseException):
    """Ends a paused step for whose result nobody waits any more."""


class _Step:
    """A piece of work that waits for a thread or runs in one. `number` is the number of its request."""

    __slots__ = ("began", "done", "given_up", "number", "resumed", "threads", "used", "user", "work")

    def __init__(self, threads: WorkerThreads, user: _User, number: int, work: Callable[[], Any]) -> None:
        self.threads = threads
        self.user = user
        self.number = number
        self.work = work
        self.done: Future[Any] = Future()
        self.resumed: Lock | None = None
        """Lock that the thread of a paused step waits for; None for a step that was never paused."""
        self.given_up = False
        """True once nobody waits for the result any more."""
        self.began = 0.0
        self.used = 0.0
        """Readings at the start of this slice of the step: `began` of the wall clock, `used` of its thread's CPU
        time."""


class _User:
    """A user with waiting or running steps. `used` is the virtual time at which the user's next step starts."""

    __slots__ = ("in_line", "name", "running", "used", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.used = -inf if name == _SERVER else 0.0
        self.waiting: list[_Step] = []
        """Waiting steps, in the order of their requests' numbers."""
        self.running = 0
        self.in_line = False

    def put(self, step: _Step) -> None:
        insort(self.waiting, step, key=_number)

    def take(self, step: _Step) -> None:
        self.waiting.remove(step)


_number: Final = attrgetter("number")


class _ThreadState(local):
    """State of one worker thread: the step that it runs."""

    step: _Step | None = None


_thread: Final = _ThreadState()


_awaited_steps: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, int]] = WeakKeyDictionary()


def awaited_steps(loop: asyncio.AbstractEventLoop) -> int:
    """Return the number of steps in worker threads for which code on this event loop waits."""
    return _awaited_steps.get(loop, 0)


def give_way() -> None:
    """Let steps of other users run if the calling step has run for a slice; call it now and then in work that may take
    long.

    Does nothing on the event loop, where it costs about 50 ns. So call it for each item of a list of objects rather
    than for each value. Raises a private BaseException if nobody waits for the step's result any more.
    """
    step = _thread.step
    if step is not None and monotonic() > step.began + SLICE:
        step.threads.give_way(step)


def paced(items: Collection[T]) -> Iterable[T]:
    """Return `items`; if there are many, iterating over them calls `give_way` before each."""
    return items if len(items) < _MANY else _paced(items)


def _paced(items: Collection[T]) -> Iterator[T]:
    for item in items:
        give_way()
        yield item


class WorkerThreads:
    """A worker thread that alternates with the event loop, and a second one for when a step in the first takes long.

    More threads at once would not do more work, as it is Python code, and would keep the event loop waiting. Threads of
    paused steps only wait.

    The next step is one of the user who has used the least time. A user who is new, or had no work, starts at the
    virtual time of the user being served, so that idle time is not saved up. No user runs steps in both threads. Of one
    user's steps, the ones of the oldest request run first, so that requests finish before others start and few large
    objects are alive. Work that belongs to no user precedes everything else.
    """

    def __init__(self, *, patience: float = _LONG, interpreter: Interpreter | None = None) -> None:
        """Create the threads. A step that has not given way for `patience` seconds runs beside another one."""
        self._patience = patience
        self._threads = ThreadPoolExecutor(_AT_ONCE + _PAUSED + _MOST_GIVEN_UP, thread_name_prefix="worker")
        self._lock = Lock()
        self.numbers = count()
        """Numbers of requests, in the order of their arrival."""
        self._users: dict[str, _User] = {}
        """Users with steps, and users without steps who have used more time than users with steps."""
        self._most_users = 64
        self._line: list[tuple[float, int, _User]] = []
        """Heap of users who may be served next, by the time they have used, then by when they entered the heap."""
        self._sequence = count()
        self._virtual_time = 0.0
        self._running: list[_Step] = []
        self._begun: deque[_Step] = deque()
        self._paused: set[_Step] = set()
        self._checked_by: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._interpreter = interpreter or Interpreter()

    async def run(self, name: str, number: int, work: Callable[[], R]) -> R:
        """Run `work` in a worker thread for the user `name`, as a step of the request `number`.

        Returns what `work` returns. Raises what `work` raises, and RuntimeError if the threads are closed.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the worker threads are closed")
            step = self._put(name, number, work)
            self._submit(self._next())
            if self._line:
                self._schedule_check(loop)
        _awaited_steps[loop] = _awaited_steps.get(loop, 0) + 1
        try:
            result: R = await asyncio.wrap_future(step.done)
        except BaseException:
            self._give_up(step)
            del step  # an error's traceback refers to this frame, as in `_do`
            raise
        finally:
            _awaited_steps[loop] -= 1
        return result

    def has_room(self, name: str) -> bool:
        """Return True if the user `name` may have another waiting step."""
        with self._lock:
            user = self._users.get(name)
            if user is None or not user.waiting:
                return True
            users = sum(1 for each in self._users.values() if each.waiting)
            return len(user.waiting) < min(MAX_WAITING, max(_LEAST_WAITING, _WAITING_IN_ALL // users))

    def close(self) -> None:
        """Stop accepting work. Waiting steps are cancelled, and running ones end at their next `give_way`."""
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

    # Choice of the next step. All of this runs with the lock held.

    def _put(self, name: str, number: int, work: Callable[[], Any]) -> _Step:
        user = self._users.get(name)
        if user is None:
            if len(self._users) >= self._most_users:
                self._forget_idle_users()
            user = self._users[name] = _User(name)
        if name != _SERVER and not user.waiting and not user.running:
            user.used = max(user.used, self._virtual_time)
        step = _Step(self, user, number, work)
        user.put(step)
        self._line_up(user)
        return step

    def _forget_idle_users(self) -> None:
        """Forget users without steps who have used no more time than the user being served."""
        self._users = {
            name: user
            for name, user in self._users.items()
            if user.waiting or user.running or user.used > self._virtual_time
        }
        self._most_users = 64 + 2 * len(self._users)

    def _forget_all(self) -> None:
        """Forget all users, when nobody has steps: a user who had more time took it from nobody."""
        self._virtual_time = max(self._virtual_time, *(user.used for user in self._users.values()))
        self._users.clear()
        self._line.clear()

    def _line_up(self, user: _User) -> None:
        if user.waiting and not user.in_line and (not user.running or user.name == _SERVER):
            heappush(self._line, (user.used, next(self._sequence), user))
            user.in_line = True

    def _first(self) -> _User | None:
        """Return the user to be served next, or None."""
        while self._line:
            user = self._line[0][2]
            if user.waiting:
                return user
            heappop(self._line)  # the user's waiting steps were given up
            user.in_line = False
        return None

    def _next(self) -> _Step | None:
        """Start the next step if no step runs, or only steps that have not given way for `patience` seconds.

        Resumes a paused step and returns None. Returns a step that was not begun before, for a thread to run.
        """
        awaited = [step for step in self._running if not step.given_up]
        if len(awaited) >= _AT_ONCE or len(self._running) >= _AT_ONCE + _MOST_GIVEN_UP:
            return None
        if any(monotonic() < step.began + self._patience for step in awaited):
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
        """Add the CPU time of this thread since the last charge to the user's time. Called in the step's thread."""
        now = thread_time()
        step.user.used += now - step.used
        step.used = now

    def _resume(self, step: _Step) -> None:
        self._paused.discard(step)
        assert step.resumed is not None
        step.resumed.release()

    def _submit(self, step: _Step | None) -> None:
        """Give a step to a thread of the pool."""
        if step is not None:
            self._begun.append(step)  # not an argument: the thread would keep a reference while it runs later steps
            self._threads.submit(self._serve)

    # On the event loop

    def _schedule_check(self, loop: asyncio.AbstractEventLoop) -> None:
        """Schedule a check that starts waiting steps beside a step that takes long."""
        if self._checked_by is not loop:
            self._checked_by = loop
            loop.call_later(self._patience, self._check)

    def _check(self) -> None:
        with self._lock:
            loop, self._checked_by = self._checked_by, None
            self._submit(self._next())
            if self._line and loop is not None:
                self._schedule_check(loop)

    def _give_up(self, step: _Step) -> None:
        """Give up a step for whose result nobody waits any more: remove it if it waits, else end it at its next
        `give_way`.
        """
        with self._lock:
            step.given_up = True
            if step in step.user.waiting and step not in self._paused:
                step.user.take(step)

    # In the worker threads

    def _serve(self) -> None:
        step: _Step | None = self._begun.popleft()
        while step is not None:
            step = self._do(step)

    def _do(self, step: _Step) -> _Step | None:
        """Run a step to its end. Return the step to run next, or None."""
        result, error = None, None
        begins = step.done.set_running_or_notify_cancel()
        self._interpreter.thread_starts_work()
        step.used = thread_time()
        _thread.step = step
        try:
            if begins:
                result = step.work()
        except BaseException as raised:
            error = raised
        _thread.step = None
        with self._lock:
            self._charge(step)
            self._end(step)
            self._line_up(step.user)
            following = self._next()
            if not self._running:
                self._forget_all()
        self._interpreter.thread_ends_work()
        if isinstance(error, _GivenUp):
            error = CancelledError()  # for a caller that still waits, as the threads were closed
        if error is not None:
            step.done.set_exception(error)
        elif begins:
            step.done.set_result(result)
        del step, error  # an error's traceback refers to this frame: a reference back would keep both alive
        return following

    def give_way(self, step: _Step) -> None:
        """Pause a step while another user is to be served first.

        Raises _GivenUp if nobody waits for its result any more.
        """
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
            self._submit(self._next())
        self._interpreter.thread_ends_work()
        step.resumed.acquire()
        self._interpreter.thread_starts_work()
        step.used = thread_time()
        if step.given_up:
            raise _GivenUp


class _SwitchInterval:
    """The interpreter's switch interval, shortened while worker threads of any server in this process work."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._working = 0
        self._usual = 0.0

    def shorten(self) -> None:
        """Count one more working thread; the first shortens the interval."""
        with self._lock:
            self._working += 1
            if self._working == 1:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_INTERVAL)

    def restore(self) -> None:
        """Count one working thread less; the last restores the interval."""
        with self._lock:
            self._working -= 1
            if not self._working:
                sys.setswitchinterval(self._usual)


_switch_interval: Final = _SwitchInterval()


class Interpreter:
    """Garbage collection while the threads of one server work, and release of memory once they rest.

    A collection walks all objects created since the last one that are still alive, with the interpreter lock held. So
    until the threads have rested, garbage is collected only at moments when that is cheap. Worker threads create no
    reference cycles, and so no garbage that needs a collection.

    Threads have rested when no step has run for `rest` seconds. While they do not rest, a cheap moment is looked for
    every `look_every` seconds: the youngest generation has less than `few` objects. After `at_last` seconds, garbage is
    collected whatever the number of objects.
    """

    def __init__(
        self,
        *,
        rest: float = _REST,
        look_every: float = _LOOK_EVERY,
        few: int = _FEW,
        at_last: float = _COLLECTION_AT_LAST,
    ) -> None:
        self.rest = rest
        self.look_every = look_every
        self.few = few
        self.at_last = at_last
        self._lock = Lock()
        self._working = 0
        self._holds_collection = False
        self._collected = self._looked = 0.0
        self._ended = self._trimmed = 0.0
        self._resting: Timer | None = None
        self._is_closed = False

    def thread_starts_work(self) -> None:
        """Count one more working thread; the first stops garbage collection."""
        _switch_interval.shorten()
        with self._lock:
            self._working += 1
            if not self._is_closed and not self._holds_collection and gc.isenabled():
                gc.disable()
                self._holds_collection = True
                self._collected = self._looked = monotonic()

    def thread_ends_work(self) -> None:
        """Count one working thread less, and schedule the end of the rest."""
        self.collect()
        _switch_interval.restore()
        with self._lock:
            self._working -= 1
            self._ended = monotonic()
            self._schedule_rest()

    def collect(self) -> None:
        """Collect the garbage of other threads, if few objects of the worker threads are alive at this moment."""
        now = monotonic()
        if not self._holds_collection or now < self._looked + self.look_every:
            return
        self._looked = now
        if now > self._collected + self.at_last or _are_fewer_young(self.few):
            self._collected = now
            gc.collect(0)

    def _schedule_rest(self) -> None:
        # Not a timer of the event loop, which may end earlier: the process must get its collector back.
        if self._holds_collection and self._resting is None:
            self._resting = Timer(self.rest, self._on_rest)
            self._resting.daemon = True
            self._resting.start()

    def _on_rest(self) -> None:
        """Enable garbage collection again if no step has run for `rest` seconds, and give memory back."""
        with self._lock:
            self._resting = None
            if self._working or monotonic() < self._ended + self.rest:
                self._schedule_rest()
                return
            self._enable_collection()
        if monotonic() > self._trimmed + _TRIM_EVERY:
            self._trimmed = monotonic()
            give_memory_back()

    def _enable_collection(self) -> None:
        if self._holds_collection:
            gc.enable()
            self._holds_collection = False

    def close(self) -> None:
        """Enable garbage collection for good, as the threads end."""
        with self._lock:
            self._is_closed = True  # so that a step that starts while the threads end does not disable collection
            self._enable_collection()
            if self._resting is not None:
                self._resting.cancel()


def _are_fewer_young(few: int) -> bool:
    """Return True if the youngest generation has less than `few` objects.

    `gc.get_count` alone is too low where objects of older generations have been freed.
    """
    return gc.get_count()[0] < few and len(gc.get_objects(0)) < few
