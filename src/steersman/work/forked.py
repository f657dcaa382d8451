"""A piece of work that a child process does, so that what it loads is not kept."""

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


def may_fork() -> bool:
    """Return True on Linux while this process has one thread: with others a child could wait for their locks."""
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


class Forked:
    """A child process that does `work`, which leaves its results in files. To be made if `may_fork()`, on a loop."""

    def __init__(self, work: Callable[[], None]) -> None:
        """Raises OSError where there can be no more processes."""
        self._reader, writer = os.pipe()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the handlers are this process's
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _run(work, blocked)
        except OSError:
            os.close(self._reader)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            os.close(writer)  # the child has it until it ends
        self._status: int | None = None
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._reader, self._reap)

    async def ended(self) -> bool:
        """Wait until the child has ended. Return True if its work raised nothing."""
        await self._ended.wait()
        return self._status == 0

    def end(self) -> None:
        """End the child if it still runs."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            self._reap()

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._reader)
        os.close(self._reader)
        self._status = os.waitpid(self._pid, 0)[1]
        self._ended.set()


def _run(work: Callable[[], None], blocked: set[int | signal.Signals]) -> NoReturn:
    """Do the work of a child. Signals that a terminal sends to both processes are for the parent, which ends this."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        work()
        code = 0
    except Exception as error:
        logger.info("a child process has not done its work, which is done in the server: %r", error)
    finally:
        os._exit(code)
