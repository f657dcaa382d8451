"""Work in a forked child process, so that memory and modules it needs are not kept by the server."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

logger = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def can_fork() -> bool:
    """Return True on Linux while this process has only one thread.

    With more threads, the child could wait for ever for a lock that another thread held at the fork.
    """
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


class Forked:
    """Child process that runs `work`, which leaves its results in files.

    Create it on an event loop, if `can_fork()`.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        """Fork the child process. Raises OSError if the system allows no more processes."""
        self._reader, writer = os.pipe()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the child inherits this process's handlers
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _run(work, blocked)
        except OSError:
            os.close(self._reader)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            os.close(writer)  # the child keeps its copy open until it ends, which wakes the reader
        self._status: int | None = None
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._reader, self._reap)

    async def wait(self) -> bool:
        """Wait until the child has ended. Return True if `work` raised nothing."""
        await self._ended.wait()
        return self._status == 0

    def kill(self) -> None:
        """Kill the child if it still runs."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            self._reap()

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._reader)
        os.close(self._reader)
        self._status = os.waitpid(self._pid, 0)[1]
        self._ended.set()


def _run(work: Callable[[], None], blocked: set[int | signal.Signals]) -> NoReturn:
    """Run `work` in the child process and exit.

    SIGINT is ignored because a terminal sends it to both processes: the parent handles it and kills the child.
    """
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        work()
        code = 0
    except Exception as error:
        logger.info("a child process has failed; the server does its work instead: %r", error)
    finally:
        os._exit(code)
