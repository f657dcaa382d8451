"""The end of a hanging test: stacks of its tasks, as those of threads end in the event loop, then stacks of all threads."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
from collections.abc import Iterator
from math import inf
from time import monotonic, sleep
from types import FrameType
from typing import Any, Final

LOOK_EVERY: Final = 0.5


def running_loops() -> Iterator[asyncio.AbstractEventLoop]:
    """Yield the event loops that run in any thread."""
    found = set()
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            owner = frame.f_locals.get("self")
            if isinstance(owner, asyncio.AbstractEventLoop) and owner not in found:
                found.add(owner)
                yield owner
            frame = frame.f_back


def awaited(coroutine: Any) -> Iterator[str]:
    """Yield the places where a coroutine waits, from the outermost to the innermost coroutine."""
    while coroutine is not None:
        for kind in ("cr", "gi", "ag"):
            frame = getattr(coroutine, f"{kind}_frame", None)
            if frame is not None:
                yield f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_qualname}'
                coroutine = getattr(coroutine, f"{kind}_await" if kind != "gi" else "gi_yieldfrom")
                break
        else:
            return


def tasks() -> str:
    """Return a paragraph for each task of each running event loop: its name, and the places where it waits."""
    paragraphs = []
    for loop in running_loops():
        for task in asyncio.all_tasks(loop):
            paragraphs.append("\n".join([f"Task {task.get_name()}:", *awaited(task.get_coro())]))
    return "\n".join(sorted(paragraphs))


class Watch:
    """Plugin that writes the places where all tasks wait to a file descriptor when a test takes too many seconds."""

    def __init__(self, seconds: float, descriptor: int) -> None:
        self._seconds = seconds
        self._descriptor = os.dup(descriptor)  # while a test runs, pytest captures what is written to the first
        self._deadline = inf
        self._test = ""
        threading.Thread(target=self._look, name="hanging tests", daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Start the timer."""
        self._test, self._deadline = nodeid, monotonic() + self._seconds

    def pytest_runtest_logfinish(self) -> None:
        """Stop the timer."""
        self._deadline = inf

    def _look(self) -> None:
        while True:
            sleep(LOOK_EVERY)
            if monotonic() > self._deadline:
                self._deadline = inf
                os.write(self._descriptor, f"\n{self._test} hangs\n{tasks()}\n".encode())


class LastResort:
    """Plugin that writes the stacks of all threads and ends the process when a test takes too many seconds.

    pytest's own plugin starts and joins a thread for each test, which takes longer than many tests. This one starts its
    thread again only after a tenth of the time, so that a test has at least nine tenths of it. The thread is one of C:
    it ends code, too, that does not release the interpreter lock.
    """

    def __init__(self, seconds: float, descriptor: int, *, exits: bool) -> None:
        self._seconds = seconds
        self._descriptor = os.dup(descriptor)
        self._exits = exits
        self.began = -inf
        """Time at which the timer was started last."""

    def pytest_runtest_logstart(self) -> None:
        """Start the timer again if a tenth of its time is over."""
        now = monotonic()
        if now - self.began > self._seconds / 10:
            self.began = now
            faulthandler.dump_traceback_later(self._seconds, file=self._descriptor, exit=self._exits)

    def pytest_enter_pdb(self) -> None:
        """Stop the timer, as a person takes over."""
        faulthandler.cancel_dump_traceback_later()
        self.began = inf

    def pytest_unconfigure(self) -> None:
        """Stop the timer."""
        faulthandler.cancel_dump_traceback_later()
