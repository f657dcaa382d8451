"""The worker processes of a server: their start, replacement, restart and metrics."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from typing import Final

from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.workers import messages
from steersman.controlplane.workers.messages import WorkerSettings, share
from steersman.controlplane.workers.own_series import own_series
from steersman.controlplane.workers.process import Launch, WorkerProcess, launch_process
from steersman.controlplane.workers.sums import Sums
from steersman.machinery.shared_words import SharedWords
from steersman.net.log_levels import NOTICE
from steersman.storage.shared.server import StorageServer
from steersman.work.backoff import Backoff
from steersman.work.periodic import Periodic

logger = logging.getLogger(__name__)

_LONGEST_END: Final = 70.0
"""Seconds allowed for a worker's end besides --shutdown-delay-duration: requests may take 60 of them."""
_BACKOFF: Final = Backoff(0.1, 30.0)
_LOOKS: Final = 5.0
"""Seconds between two checks for hanging workers."""
_HANGING: Final = 30.0
"""Seconds without a heartbeat after which a worker is killed."""
_FIRST_REQUESTS: Final = 2.0
"""Seconds allowed for the first request on recent connections before a replaced worker ends: connections without a
request are closed then.
"""
_WELL: Final = 60.0
"""Seconds of running after which the end of a worker no longer counts as a failed start."""


def pause(failures: int) -> float:
    """Return the seconds before the restart of a worker that has failed this many times soon after its start."""
    return 0.0 if failures == 0 else _BACKOFF.wait(failures - 1)


class WorkerPool:
    """The workers of a server: `start` them one by one, then `keep_running`, in the end `end` or `kill`.

    The workers listen on `port`, and use the storage of `server`, or their own without one. `launch` starts a process.
    """

    def __init__(
        self,
        options: Options,
        port: int,
        words: SharedWords,
        server: StorageServer | None,
        launch: Launch = launch_process,
    ) -> None:
        self.options = options
        self._port = port
        self._words = words
        self._server = server
        self._launch = launch
        self.processes: list[WorkerProcess] = []
        """All processes, with those that end."""
        self.replacing: asyncio.Task[None] | None = None
        """The task that replaces the workers, None before the first replacement."""
        self._failures: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._care = Periodic("supervision of workers", self._supervise, _LOOKS)
        self._running = False
        """True if workers that end are to be restarted."""
        self._counted = ""
        """Counters of workers that have ended."""
        self._burying = asyncio.Lock()

    def keep_running(self) -> None:
        """Restart workers that end or hang from now on."""
        self._running = True
        self._care.start()

    async def release(self) -> None:
        """Restart no more workers, and end the work on their restart and replacement."""
        self._running = False
        if self.replacing is not None:
            self.replacing.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        await self._care.stop()

    def begin_end(self) -> None:
        """Tell all workers to end."""
        for each in self.processes:
            each.end()

    async def wait_for_end(self, delay: float) -> None:
        """Wait for the end of all workers, which may take `delay` seconds longer than usual; then kill them."""
        await asyncio.gather(*(self._wait_for_end(each, _LONGEST_END + delay) for each in self.processes))

    async def kill(self) -> None:
        """Kill all workers and wait for their end."""
        for each in self.processes:
            each.leaving = True
            each.kill()
        await asyncio.gather(*(each.gone.wait() for each in self.processes))

    def hand_over(self, sock: socket.socket) -> bool:
        """Pass a connection to the worker with the fewest connections. Return False if none takes it."""
        ready = sorted((each for each in self.processes if each.accepts_connections), key=lambda each: each.open)
        return any(each.hand(sock.fileno()) for each in ready)

    async def _wait_for_end(self, process: WorkerProcess, seconds: float) -> None:
        """Wait for the end of a process; kill it after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await process.gone.wait()
        except TimeoutError:
            logger.error("worker %d does not stop in time and is killed", process.settings.number)
            process.kill()
            await process.gone.wait()

    # Start and restart

    async def start(self, number: int) -> WorkerProcess:
        """Start a process for the worker of this number and return it. Raises OSError."""
        taken = {each.settings.slot for each in self.processes}
        slot = next(each for each in range(messages.MOST_PROCESSES) if each not in taken)
        settings = WorkerSettings(
            share(self.options, number, self._port), self.options.as_flags(), number, slot, self._port
        )
        process = WorkerProcess(settings, self._words, self._gather, self._ended, self._launch)
        self.processes.append(process)
        try:
            await process.start(self._server)
        except BaseException:
            process.leaving = True  # the caller knows of the failure
            self.processes.remove(process)
            raise
        return process

    def _ended(self, process: WorkerProcess) -> None:
        """Handle the end of a process: restart the worker unless its end is intended."""
        self._keep(self._count_in(process))
        if process.leaving or not self._running:
            return
        lived = asyncio.get_running_loop().time() - process.started_at
        if lived >= _WELL:
            self._failures[process.settings.number] = 0
        self._keep(self.restart(process.settings.number))

    async def restart(self, number: int) -> None:
        """Start the worker of this number again after a pause, and again if that fails."""
        failures = self._failures.get(number, 0)
        self._failures[number] = failures + 1
        await asyncio.sleep(pause(failures))
        if self._has_worker(number):
            return  # all workers are being replaced at the moment
        try:
            process = await self.start(number)
        except OSError as error:
            logger.error("restarting worker %d failed: %s", number, error)
            self._keep(self.restart(number))
            return
        try:
            await process.ready()
        except OptionsError as error:
            logger.error("restarting worker %d failed: %s", number, error)
            process.kill()
        else:
            logger.log(NOTICE, "worker %d runs again, as process %d", number, process.pid)

    def _has_worker(self, number: int) -> bool:
        """Return True if a worker of this number runs or is starting."""
        return any(each.settings.number == number and not each.is_ending for each in self.processes)

    async def _supervise(self) -> None:
        """Kill hanging workers, whose clients would wait for ever."""
        for each in self.processes:
            if each.hangs(_HANGING):
                logger.error("killing worker %d, which has not responded for %g s", each.settings.number, _HANGING)
                each.kill()

    def _keep(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def replace(self) -> None:
        """Replace all workers by new processes, one at a time, each once its replacement is ready."""
        if not self._running:
            return
        if self.replacing is not None and not self.replacing.done():
            logger.log(NOTICE, "SIGHUP: replacing of the workers is in progress already")
            return
        logger.log(NOTICE, "SIGHUP: replacing %d workers, one after the other", self.options.workers)
        self.replacing = asyncio.ensure_future(self._replace_all())

    async def _replace_all(self) -> None:
        for number in range(self.options.workers):
            before = [each for each in self.processes if each.settings.number == number and not each.leaving]
            try:
                process = await self.start(number)
            except OSError as error:
                self._is_not_replaced(number, error)
                return
            try:
                await process.ready()
            except OptionsError as error:
                process.leaving = True
                process.kill()
                self._is_not_replaced(number, error)
                return
            for each in before:
                each.leaving = True  # it gets no more connections
            await asyncio.sleep(_FIRST_REQUESTS)
            for each in before:
                each.end(replaced=True)
            await asyncio.gather(*(self._wait_for_end(each, _LONGEST_END) for each in before))
        logger.log(NOTICE, "all workers have been replaced")

    def _is_not_replaced(self, number: int, error: Exception) -> None:
        logger.error("replacing worker %d failed: %s", number, error)
        if not self._has_worker(number):  # the previous one has ended meanwhile
            self._keep(self.restart(number))

    # Metrics

    async def _count_in(self, process: WorkerProcess) -> None:
        """Add the counters of an ended process to the total, so that no sum ever falls."""
        async with self._burying:
            sums = Sums()
            await sums.add(self._counted, only_counts=True)
            await sums.add(process.counted.decode(), only_counts=True)
            self._counted = "".join(sums.lines())
            if process in self.processes:
                self.processes.remove(process)

    def _gather(self, asking: WorkerProcess, number: int) -> None:
        self._keep(self._answer(asking, number))

    async def _answer(self, asking: WorkerProcess, number: int) -> None:
        """Send a worker the metrics of all others.

        Its own last metrics are requested too: if it is killed before the next request, they must be in the total.
        """
        others = [each for each in self.processes if each is not asking and each.is_ready]
        texts, _ = await asyncio.gather(asyncio.gather(*(each.scraped() for each in others)), asking.scraped())
        body = messages.joined([self._counted.encode(), own_series().encode(), *texts])
        asking.gathered(number, body)
