"""Where large work is done: beside the event loop, so that the size of one request is not felt by the others.

A body is weighed before anything is made of it. What is small is worked on where it is; for what is large every step
(decoding, defaulting, validating, encoding) runs in the slow lane. A body of more values than any object has is
refused, as one call into a codec, which holds the interpreter, is to take some 50 ms at most.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from bisect import insort
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from operator import attrgetter
from threading import Lock, Timer
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar

from steersman.machinery.errors import StatusError, request_entity_too_large, too_many_requests
from steersman.machinery.nesting import MAX_DEPTH, measured

P = ParamSpec("P")
R = TypeVar("R")

MAX_OBJECTS: Final = 1 << 15
"""Objects and lists in one body. The largest definitions of custom resources have some 10,000."""
MAX_VALUES: Final = 1 << 16
"""Values in one body: members of objects and items of lists."""

_SURELY_SMALL: Final = 6_000
"""Bytes of JSON that are not looked at: at most 2,000 of the dearest values."""
_LARGE: Final = 64 << 10
_MANY: Final = 1_000
"""Values from which JSON is large whatever its size: the dearest (`{}` in a list of containers, which is wrong in three
ways) cost 30 us each."""
_LARGE_YAML: Final = 2 << 10
_LARGE_PROTOBUF: Final = 4 << 10

MAX_WAITING: Final = 64
"""Steps of one user's requests that may wait; while they do, no further large request of the user is begun."""
_WAITING_IN_ALL: Final = 256
"""What users share when several wait at once: each may have as many of these as the others."""
_LEAST_WAITING: Final = 4
"""What each may have however many they are."""

_THREADS: Final = 2
_LONG_STEP: Final = 0.25
"""Seconds after which others are begun beside a step."""
_REST: Final = 1.0
"""Seconds after a step in which what it made is used and forgotten."""
_COLLECTION_EVERY: Final = 30.0
"""Seconds."""
_SWITCH_INTERVAL: Final = 0.0005
"""Seconds after which the lane gives the interpreter to the loop while it works; otherwise each turn of the loop would
wait for the usual 5 ms."""


def is_large(data: bytes) -> bool:
    """Whether working on an object of this JSON may take longer than a turn of the loop should."""
    size = len(data)
    return size > _SURELY_SMALL and (size > _LARGE or data.count(b",") > _MANY)


def is_large_yaml(data: bytes) -> bool:
    """The same of YAML, which takes many times longer to read."""
    return len(data) > _LARGE_YAML


def is_large_protobuf(data: bytes) -> bool:
    """The same of protobuf, where an object may take two bytes."""
    return len(data) > _LARGE_PROTOBUF


def check_count(data: bytes) -> None:
    """Raises StatusError 413 for JSON of more than MAX_OBJECTS objects and lists, or MAX_VALUES values.

    What is nested more deeply than anything may be is left to the decoder, which refuses it in upstream's words.
    """
    if len(data) <= MAX_OBJECTS:
        return
    if data.count(b"{") + data.count(b"[") > MAX_OBJECTS or data.count(b",") > MAX_VALUES:
        found = measured(data)
        if found.depth > MAX_DEPTH:
            return
        if found.objects > MAX_OBJECTS:
            raise too_many_objects()
        if found.commas > MAX_VALUES:
            raise too_many_values()


def too_many_objects() -> StatusError:
    """413 for a body that has more than MAX_OBJECTS."""
    return request_entity_too_large(f"Request entity too large: limit is {MAX_OBJECTS} objects and lists")


def too_many_values() -> StatusError:
    """413 for a body that has more than MAX_VALUES."""
    return request_entity_too_large(f"Request entity too large: limit is {MAX_VALUES} values")


class _Step:
    """A piece of work that waits for its turn or is being done; `number` is that of the request it belongs to."""

    __slots__ = ("done", "number", "work")

    def __init__(self, number: int, work: Callable[[], Any]) -> None:
        self.number = number
        self.work = work
        self.done: Future[Any] = Future()


_number: Final = attrgetter("number")


class _Threads:
    """A thread that takes turns with the loop, as what it does is Python, and one for when a step of it takes long.

    More at once would do no more, and keep the loop waiting.

    They take the steps that wait user by user, a step of each; of one user's those of the request that came first, so
    that requests are finished before others are begun, and few large objects are alive. What belongs to no user comes
    before everything else. Garbage is collected once they have rested: a collection walks all that they have made and
    that is still alive, with the interpreter held. What they make has no cycles.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="slow-lane")
        self._lock = Lock()
        self._alone = Lock()
        self.numbers = count()
        """Of requests, in the order in which they came."""
        self._waiting: OrderedDict[str, list[_Step]] = OrderedDict()
        """By user, whose turn it is first."""
        self._working = 0
        self._interval = 0.0
        self._holds_collection = False
        self._ended = 0.0
        self._resting: Timer | None = None
        self._collect_at = 0.0

    async def run(self, user: str, number: int, work: Callable[[], R]) -> R:
        """What `work` for the request of this number gives or raises, when it was its turn."""
        step = _Step(number, work)
        with self._lock:
            insort(self._waiting.setdefault(user, []), step, key=_number)
        try:
            self._threads.submit(self._do_next)
            result: R = await asyncio.wrap_future(step.done)
        except BaseException:
            self._drop(user, step)
            del step  # as in `_do_step`
            raise
        return result

    def has_room(self, user: str) -> bool:
        """Whether `user` has not as much waiting as one may."""
        with self._lock:
            waiting = self._waiting.get(user)
            if waiting is None:
                return True
            share = max(_LEAST_WAITING, _WAITING_IN_ALL // len(self._waiting))
            return len(waiting) < min(MAX_WAITING, share)

    def _do_next(self) -> None:
        alone = self._alone.acquire(timeout=_LONG_STEP)
        try:
            self._do_step()
        finally:
            if alone:
                self._alone.release()

    def _do_step(self) -> None:
        step = self._next()
        if step is None or not step.done.set_running_or_notify_cancel():
            return
        result, error = None, None
        self._begin()
        try:
            result = step.work()
        except BaseException as raised:
            error = raised
        self._end()
        if error is None:
            step.done.set_result(result)
        else:
            step.done.set_exception(error)
        del step, error  # an error knows this frame, and would never go if this frame knew it

    def _next(self) -> _Step | None:
        """The step whose turn it is; none if it was given up."""
        with self._lock:
            if not self._waiting:
                return None
            user = "" if "" in self._waiting else next(iter(self._waiting))
            waiting = self._waiting[user]
            step = waiting.pop(0)
            if waiting:
                self._waiting.move_to_end(user)
            else:
                del self._waiting[user]
            return step

    def _drop(self, user: str, step: _Step) -> None:
        """Forgets a step that nobody waits for any more, and what it would have worked on, if it has not begun."""
        with self._lock:
            waiting = self._waiting.get(user)
            if waiting is not None and step in waiting:
                waiting.remove(step)
                if not waiting:
                    del self._waiting[user]

    def _begin(self) -> None:
        with self._lock:
            self._working += 1
            if self._working == 1:
                self._interval = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_INTERVAL)
            if not self._holds_collection and gc.isenabled():
                gc.disable()
                self._holds_collection = True
                self._collect_at = monotonic() + _COLLECTION_EVERY

    def _end(self) -> None:
        with self._lock:
            self._working -= 1
            self._ended = monotonic()
            if not self._working:
                sys.setswitchinterval(self._interval)
            if self._ended > self._collect_at:
                gc.collect(0)  # in a lane that never rests
                self._collect_at = self._ended + _COLLECTION_EVERY
            self._rest_soon()

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
            if self._working or self._waiting or monotonic() < self._ended + _REST:
                self._rest_soon()
            else:
                self._let_collect()

    def _let_collect(self) -> None:
        if self._holds_collection:
            gc.enable()
            self._holds_collection = False

    def close(self) -> None:
        """Takes no more work; what has not begun is not done."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            given_up = [step for waiting in self._waiting.values() for step in waiting]
            self._waiting.clear()
            self._let_collect()
            if self._resting is not None:
                self._resting.cancel()
        for step in given_up:
            step.done.cancel()


class SlowLane:
    """Where large work is done for one user, in turn with that of the others.

    What the server does for itself, or for many at once, belongs to no user and is done before everything else.
    """

    __slots__ = ("_number", "_threads", "_user")

    def __init__(self, threads: _Threads | None = None, user: str = "") -> None:
        self._threads = threads or _Threads()
        self._user = user
        self._number = next(self._threads.numbers)

    def of(self, user: str) -> SlowLane:
        """The same threads, for one request of `user`."""
        return SlowLane(self._threads, user)

    def check_room(self) -> None:
        """Raises StatusError 429 if as much of the user's waits as may; asked before a request is begun, not amid."""
        if not self._threads.has_room(self._user):
            raise too_many_requests("too many requests, please try again later", 1)

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """What `work` gives or raises; it touches nothing that belongs to the loop."""
        return await self._threads.run(self._user, self._number, partial(work, *args, **kwargs))

    def close(self) -> None:
        """Takes no more work, of any user; what has not begun is not done."""
        self._threads.close()


async def done(lane: SlowLane | None, work: Callable[..., R], *args: Any) -> R:
    """What `work` gives for `args`: in the lane for what is large, at once where there is none."""
    return work(*args) if lane is None else await lane.run(work, *args)
