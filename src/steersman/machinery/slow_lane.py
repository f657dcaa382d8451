"""Where large work is done: beside the event loop, so that the size of one request is not felt by the others.

A body is weighed before anything is made of it. What is small is worked on where it is; for what is large every step
(decoding, defaulting, validating, encoding) runs in the slow lane. A body of more values than any object has is
refused, as one call into a codec, which holds the interpreter, is to take some 50 ms at most.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar

from steersman.machinery.errors import StatusError, request_entity_too_large
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

_THREADS: Final = 2
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


class SlowLane:
    """Two threads for large work, which is Python and so takes turns with the loop; more would only keep it waiting.

    While they work, no garbage is collected: a collection walks all that they have made so far, with the interpreter
    held. What they make has no cycles.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="slow-lane")
        self._lock = Lock()
        self._working = 0
        self._interval = 0.0
        self._collects = False
        self._collect_at = 0.0

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """What `work` gives or raises; it touches nothing that belongs to the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(self._do, work, *args, **kwargs))

    def _do(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        self._begin()
        try:
            return work(*args, **kwargs)
        finally:
            self._end()

    def _begin(self) -> None:
        with self._lock:
            self._working += 1
            if self._working == 1:
                self._interval, self._collects = sys.getswitchinterval(), gc.isenabled()
                sys.setswitchinterval(_SWITCH_INTERVAL)
                gc.disable()
                self._collect_at = monotonic() + _COLLECTION_EVERY

    def _end(self) -> None:
        with self._lock:
            self._working -= 1
            if not self._working:
                sys.setswitchinterval(self._interval)
                if self._collects:
                    gc.enable()
            elif monotonic() > self._collect_at:
                gc.collect(0)  # in a lane that is never empty
                self._collect_at = monotonic() + _COLLECTION_EVERY

    def close(self) -> None:
        """Takes no more work; what has not begun is not done."""
        self._threads.shutdown(wait=False, cancel_futures=True)


async def done(lane: SlowLane | None, work: Callable[..., R], *args: Any) -> R:
    """What `work` gives for `args`: in the lane for what is large, at once where there is none."""
    return work(*args) if lane is None else await lane.run(work, *args)
