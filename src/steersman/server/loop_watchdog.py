"""Watchdog of the event loop: finds callbacks that block it, during which nothing else is answered.

A heartbeat on the event loop is late when a callback blocks the loop. While the heartbeat is overdue, a thread samples
the stack of the loop's thread; then one line is logged and the metrics are updated. A C function may hold the GIL and
so stop the sampling thread too. Therefore the duration is measured by the heartbeat alone, and the first sample after
such a call still shows its caller. The watchdog runs only if `--debug-loop-watchdog` or contention profiling demands
it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
from collections import Counter
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from steersman.endpoints.request import Request
from steersman.machinery.metrics import Gauge, Histogram, Registry
from steersman.net.message import Request as HttpRequest

logger = logging.getLogger(__name__)

_BEATS: Final = 5
"""Heartbeats per threshold; a measured duration is too short by at most one heartbeat."""
_SHORTEST: Final = 0.001
STILL: Final = 5.0
"""Seconds after which a block in progress is reported: it may never end."""
_MOST_LOOKS: Final = 10_000
_FRAMES: Final = 6
_MOST_HOLDS: Final = 1024
"""Limit of code locations that are remembered."""
_LONGEST_PATH: Final = 120
_PACKAGE: Final = "steersman."
_WAITING: Final = frozenset({"threading", "queue", "concurrent.futures.thread"})
"""Modules of idle threads."""
_IDLE: Final = frozenset({"asyncio.runners", "asyncio.base_events", "selectors"})
"""Modules of an event loop that waits for events, or runs code without Python frames."""
_WORKED: Final = 0.1
"""Least CPU time, as a fraction of a block without samples, for counting it: otherwise the machine was busy
elsewhere.
"""
_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class _Sample(NamedTuple):
    """A sample of a thread: the innermost function of this package, the innermost frames, and the request."""

    where: str
    stack: str
    request: str


class Hold(NamedTuple):
    """Blocks at one code location: their number, their total seconds, and the last stack."""

    where: str
    times: int
    seconds: float
    stack: str


class LoopWatchdog:
    """Watchdog of the running event loop from `start` to `stop`.

    `threshold` is the shortest block in seconds that is remembered, `told` the shortest that is logged and counted; by
    default they are equal.
    """

    def __init__(self, threshold: float, registry: Registry, told: float | None = None) -> None:
        self.threshold = threshold
        self._least_told = threshold if told is None else told
        self._holds: dict[str, Hold] = {}
        self._interval = max(threshold / _BEATS, _SHORTEST)
        self._held = Histogram(
            "steersman_loop_held_seconds",
            "Time the event loop was held for by one callback, over the threshold.",
            _BUCKETS,
            ("where",),
        )
        self._longest = Gauge("steersman_loop_held_max_seconds", "Longest time that the event loop was held for.")
        self._longest.set(0)
        registry.add(self._held, self._longest)
        self._loop: asyncio.AbstractEventLoop
        self._timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="loop-watchdog", daemon=True)
        self._stopped = threading.Event()
        self._loop_thread = 0
        self._due = 0.0
        self._samples: list[_Sample] = []
        self._others: list[_Sample] = []
        self._thread_cpu = self._process_cpu = 0.0
        self._collecting = self._collection_began = 0.0

    def start(self) -> None:
        """Start the watchdog; call it on the watched event loop."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        gc.callbacks.append(self._on_collection)
        self._next_beat()
        self._thread.start()

    def stop(self) -> None:
        """Stop the heartbeat and the thread."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        gc.callbacks.remove(self._on_collection)
        self._stopped.set()
        self._thread.join()

    def holds(self) -> list[Hold]:
        """Return the blocks since the start by location, the longest first."""
        return sorted(self._holds.values(), key=lambda each: -each.seconds)

    # On the event loop

    def _next_beat(self) -> None:
        self._collecting = 0.0
        self._thread_cpu, self._process_cpu = time.thread_time(), time.process_time()
        # In this order: the thread reads the lists first, and so adds no sample of a finished block to the new ones.
        self._due = time.monotonic() + self._interval
        self._samples, self._others = [], []
        self._timer = self._loop.call_later(self._interval, self._beat)

    def _beat(self) -> None:
        late = time.monotonic() - self._due
        if late >= self.threshold:
            thread_cpu, process_cpu = time.thread_time() - self._thread_cpu, time.process_time() - self._process_cpu
            if self._samples or process_cpu >= late * _WORKED:
                self._report(late, thread_cpu, process_cpu)
        self._next_beat()

    def _report(self, seconds: float, thread_cpu: float, process_cpu: float) -> None:
        samples = self._samples
        # Another thread held the GIL and is the one to report.
        if self._others and thread_cpu < process_cpu / 2 and process_cpu > seconds / 2:
            samples = self._others
        where, count = Counter(each.where for each in samples).most_common(1)[0] if samples else ("unknown", 0)
        there = [each for each in samples if each.where == where]
        stack = Counter(each.stack for each in there).most_common(1)[0][0] if there else ""
        if where in self._holds or len(self._holds) < _MOST_HOLDS:
            before = self._holds.get(where)
            times, total = (0, 0.0) if before is None else (before.times, before.seconds)
            self._holds[where] = Hold(where, times + 1, total + seconds, stack)
        if seconds < self._least_told:
            return
        self._held.observe(seconds, (where,))
        if seconds > self._longest.value():
            self._longest.set(seconds)
        request = next((each.request for each in (*there, *samples) if each.request), "no request")
        logger.warning(
            "the loop was held for %.3f s (its thread ran %.3f s, the process %.3f s, collecting garbage %.3f s) "
            "by %s: %d of %d samples in %s: %s",
            seconds,
            thread_cpu,
            process_cpu,
            self._collecting,
            request,
            count,
            len(samples),
            where,
            stack,
        )

    def _report_ongoing(self, seconds: float, look: _Sample) -> None:
        """Log a block in progress; called on the thread, as the event loop may never continue."""
        logger.warning(
            "the loop is held for %.3f s by now by %s: in %s: %s",
            seconds,
            look.request or "no request",
            look.where,
            look.stack,
        )

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collection_began = time.monotonic()
        else:
            self._collecting += time.monotonic() - self._collection_began

    # On the thread

    def _watch(self) -> None:
        own = threading.get_ident()
        reported: list[_Sample] | None = None
        while not self._stopped.wait(self._interval):
            samples, others = self._samples, self._others
            if time.monotonic() < self._due + self.threshold / 2 or len(samples) >= _MOST_LOOKS:
                continue
            frames = sys._current_frames()
            found = frames.pop(self._loop_thread, None)
            frames.pop(own, None)
            if found is not None and found.f_globals.get("__name__") not in _IDLE:
                samples.append(_sample(found))
                held = time.monotonic() - self._due
                if held > STILL and reported is not samples:
                    reported = samples
                    self._report_ongoing(held, samples[-1])
            for each in frames.values():
                if each.f_globals.get("__name__") not in _WAITING:
                    others.append(_sample(each))


def _sample(frame: FrameType) -> _Sample:
    """Return a sample of the thread with this innermost frame."""
    names: list[str] = []
    where = request = ""
    last: CodeType | None = None
    each: FrameType | None = frame
    while each is not None and each.f_globals is globals():
        each = each.f_back  # skips the callback of a garbage collection
    while each is not None:
        own = str(each.f_globals.get("__name__", "")).startswith(_PACKAGE)
        if own and not where:
            where = _name(each)
        # A recursive function is listed once.
        if (own or not names) and len(names) < _FRAMES and each.f_code is not last:
            names.append(f"{_name(each)}:{each.f_lineno}")
        if own and not request:
            request = _request(each)
        last = each.f_code
        each = each.f_back
    return _Sample(where or _name(frame), " < ".join(names), request)


def _name(frame: FrameType) -> str:
    module = str(frame.f_globals.get("__name__", "?")).removeprefix(_PACKAGE)
    return f"{module}.{frame.f_code.co_qualname.replace('.<locals>', '')}"


def _request(frame: FrameType) -> str:
    """Return the request in a frame's variables: method, path and user, without its contents."""
    code = frame.f_code
    for name in ("request", "http"):
        if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
            value: Any = frame.f_locals.get(name)
            if isinstance(value, Request):
                user = getattr(value, "user", None)
                return f"{_shown(value.method, value.path)} of {_printable(user.name) if user else 'nobody yet'}"
            if isinstance(value, HttpRequest):
                return _shown(value.method, value.path)
    return ""


def _shown(method: str, path: str) -> str:
    return f"{_printable(method)} {_printable(path)}"


def _printable(text: str) -> str:
    """Return a client's text escaped and shortened for one line of the log."""
    return ascii(text[:_LONGEST_PATH])[1:-1]
