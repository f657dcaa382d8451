"""Who accepts connections, and hands each to the worker that has the fewest."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

from steersman.controlplane.workers.process import WorkerProcess
from steersman.net.arrivals import BACKLOG

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 64
"""Connections that are accepted in a turn of the loop."""
_PAUSE: Final = 0.02
"""Seconds for which nothing is accepted while no worker takes a connection: they wait in the socket."""
_REST: Final = 1.0
"""The same when accepting has failed: there are no descriptors left, say."""


class Handover:
    """Accepts on a bound socket from `start` to `stop`; `workers` gives those there are."""

    def __init__(self, listener: socket.socket, workers: Callable[[], Sequence[WorkerProcess]]) -> None:
        self._listener = listener
        self._workers = workers
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._waiting: socket.socket | None = None
        """One that was accepted, and that nobody has taken yet."""

    def start(self) -> None:
        """Raises OSError."""
        self._listener.listen(BACKLOG)
        self._loop.add_reader(self._listener, self._accept)

    def stop(self) -> None:
        """Closes the socket."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        if self._waiting is not None:
            self._waiting.close()

    def _accept(self) -> None:
        try:
            for _ in range(_AT_ONCE):
                sock = self._waiting or self._listener.accept()[0]
                self._waiting = None
                if not self._handed(sock):
                    self._waiting = sock
                    self._rest(_PAUSE)
                    return
                sock.close()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            logger.error("accepting connections failed; retrying in one second: %s", error)
            self._rest(_REST)

    def _handed(self, sock: socket.socket) -> bool:
        """Whether a worker has the connection now."""
        ready = sorted((each for each in self._workers() if each.takes_connections), key=lambda each: each.open)
        return any(each.hand(sock.fileno()) for each in ready)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)
        if self._waiting is not None:
            self._accept()
