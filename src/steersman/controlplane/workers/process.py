"""A worker process as seen by its owner."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from steersman.controlplane.addresses import Address
from steersman.controlplane.options import OptionsError
from steersman.controlplane.workers import messages
from steersman.controlplane.workers.messages import Kind, WorkerSettings
from steersman.machinery.shared_words import SharedWords
from steersman.net.link import Link, frame
from steersman.storage.shared.server import StorageServer
from steersman.work.shielding import shielded

logger = logging.getLogger(__name__)

_MODULE: Final = "steersman.cli.worker"
_SCRAPE: Final = 3.0
"""Seconds allowed for a worker to send its metrics."""

Gather = Callable[["WorkerProcess", int], None]
Launch = Callable[[int, list[int]], subprocess.Popen[bytes]]
"""Starts a process that inherits the descriptor of the shared words and others. Blocks. Raises OSError."""


def launch_process(words: int, descriptors: list[int]) -> subprocess.Popen[bytes]:
    """Start and return the process of a worker, which inherits these descriptors. Blocks. Raises OSError."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _MODULE, str(words), *map(str, descriptors)],
        stdin=subprocess.DEVNULL,
        pass_fds=[words, *descriptors],
    )


def _close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()


def _abandon(sockets: Iterable[socket.socket], launched: asyncio.Future[subprocess.Popen[bytes]]) -> None:
    """Close the sockets and end the process of a start that was cancelled."""
    _close(sockets)
    if launched.exception() is None:
        process = launched.result()
        process.kill()
        launched.get_loop().run_in_executor(None, process.wait)


class WorkerProcess:
    """A worker process, started with `start`; `ended` is called once after its end, when no task for it runs any
    more.
    """

    def __init__(
        self,
        given: WorkerSettings,
        words: SharedWords,
        gather: Gather,
        ended: Callable[[WorkerProcess], None],
        launch: Launch = launch_process,
    ) -> None:
        self.settings = given
        self.leaving = False
        """True once the process was told to stop."""
        self.started_at = asyncio.get_running_loop().time()
        self._ready: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
        self.gone = asyncio.Event()
        self.counted = b""
        """The last metrics that the process has sent."""
        self._words = words
        self._gather = gather
        self._ended = ended
        self._launch = launch
        self._handed = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._link: Link | None = None
        self._connections: socket.socket | None = None
        self._ending: asyncio.Task[None] | None = None
        self._scraping: dict[int, asyncio.Future[bytes]] = {}
        self._last = 0
        self._beat = 0
        self._beat_at = self.started_at
        for word in (messages.open_word, messages.passed_word, messages.beat_word):
            words[word(given.slot)] = 0

    async def start(self, storage: StorageServer | None) -> None:
        """Start the process with access to this storage; with None it opens its own. Raises OSError."""
        near, far = socket.socketpair()
        self._connections, far_connections = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connections.setblocking(False)
        theirs = [far, far_connections]
        if storage is not None:
            near_storage, far_storage = socket.socketpair()
            theirs.append(far_storage)
            await storage.connect(near_storage, self._connection_lost)
        descriptors = [each.fileno() for each in theirs]
        launching = asyncio.ensure_future(asyncio.to_thread(self._launch, self._words.descriptor, descriptors))
        try:
            self._process = await shielded(launching)
        except asyncio.CancelledError:
            # its thread goes on, with descriptors that must not be closed before
            launching.add_done_callback(partial(_abandon, [near, self._connections, *theirs]))
            raise
        except OSError:
            _close([near, self._connections, *theirs])
            raise
        _close(theirs)
        self._link = await Link.on(near, self._received, self._connection_lost)
        self._link.send(frame(Kind.SETTINGS, 0, messages.encode(self.settings)))

    async def ready(self) -> Address:
        """Return the address once the process accepts connections. Raises OptionsError if it ends before."""
        return await shielded(self._ready)

    # Connections

    @property
    def is_ready(self) -> bool:
        """True once the process has been ready."""
        return self._ready.done() and self._ready.exception() is None

    def hangs(self, seconds: float) -> bool:
        """Return True if the process's event loop has not run for so many seconds after it was ready."""
        now, beat = asyncio.get_running_loop().time(), self._words[messages.beat_word(self.settings.slot)]
        if beat != self._beat or not self.is_ready:
            self._beat, self._beat_at = beat, now
        return now - self._beat_at > seconds

    @property
    def is_ending(self) -> bool:
        """True if the process was told to stop or stops by itself."""
        return self.leaving or self._ending is not None

    @property
    def accepts_connections(self) -> bool:
        """True if the process may get connections."""
        return self.is_ready and not self.is_ending

    @property
    def open(self) -> int:
        """Number of the process's connections, including passed ones that it has not taken yet."""
        words, slot = self._words, self.settings.slot
        return words[messages.open_word(slot)] + self._handed - words[messages.passed_word(slot)]

    def hand(self, descriptor: int) -> bool:
        """Pass a connection to the process; return False if that fails: its queue may be full."""
        assert self._connections is not None
        try:
            socket.send_fds(self._connections, (b"c",), (descriptor,))
        except OSError:
            return False
        self._handed += 1
        return True

    # Received frames

    def _received(self, kind: int, number: int, body: bytes) -> None:
        if kind == Kind.READY and not self._ready.done():
            self._ready.set_result(messages.decode_ready(body))
        elif kind == Kind.FAILED and not self._ready.done():
            self._ready.set_exception(OptionsError(body.decode()))
        elif kind == Kind.GATHER:
            self._gather(self, number)
        elif kind == Kind.SCRAPED:
            self.counted = body
            asked = self._scraping.get(number)
            if asked is not None and not asked.done():
                asked.set_result(body)

    async def scraped(self) -> bytes:
        """Return the process's metrics; the last known ones if it does not answer in time or is gone."""
        if self._link is None:
            return self.counted
        self._last += 1
        number = self._last
        asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._scraping[number] = asked
        self._link.send(frame(Kind.SCRAPE, number))
        try:
            async with asyncio.timeout(_SCRAPE):
                return await asked
        except TimeoutError:
            logger.warning("worker %d does not send its metrics in time", self.settings.number)
            return self.counted
        finally:
            del self._scraping[number]

    def gathered(self, number: int, body: bytes) -> None:
        """Answer the worker's request for the metrics of all workers."""
        if self._link is not None:
            self._link.send(frame(Kind.GATHERED, number, body))

    # The end

    def end(self, *, replaced: bool = False) -> None:
        """Tell the process to stop gracefully; `replaced` if another process has taken over."""
        self.leaving = True
        if self._link is not None:
            self._link.send(frame(Kind.REPLACED if replaced else Kind.END, 0))

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()

    def _connection_lost(self) -> None:
        """Handle the end of one of the process's connections: the process has ended or is useless."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._bury())

    async def _bury(self) -> None:
        process = self._process
        code = 0
        if process is not None:
            try:
                async with asyncio.timeout(0.5 if self.leaving else 0.05):
                    code = await asyncio.to_thread(process.wait, 0.5)
            except (TimeoutError, subprocess.TimeoutExpired):
                process.kill()
                code = await asyncio.to_thread(process.wait)
        if self._link is not None:
            self._link.abort()
            self._link = None
        if self._connections is not None:
            self._connections.close()
        for each in self._scraping.values():
            if not each.done():
                each.set_result(self.counted)
        if not self._ready.done():
            self._ready.set_exception(OptionsError(f"a worker has ended with {code} before it was ready"))
        self._ready.exception()  # marks the exception as retrieved, as nobody may wait for it any more
        if not self.leaving:
            logger.error("worker %d (process %d) has ended %s", self.settings.number, self.pid, _how(code))
        self.gone.set()
        self._ended(self)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return 0 if self._process is None else self._process.pid


def _how(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with {code}"
