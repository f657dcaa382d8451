"""Acceptor of connections in the owner, which passes each to the worker with the fewest connections."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

from steersman.controlplane.workers.process import WorkerProcess
from steersman.net.acceptor import BACKLOG

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 64
"""Connections accepted in one iteration of the event loop."""
_PAUSE: Final = 0.02
"""Seconds without accepting while no worker takes connections; they wait in the socket's backlog."""
_REST: Final = 1.0
"""Seconds without accepting after `accept` has failed, for example for lack of file descriptors."""


class Handover:
    """Acceptor on a bound socket from `start` to `stop`; `workers` returns the worker processes."""

    def __init__(self, listener: socket.socket, workers: Callable[[], Sequence[WorkerProcess]]) -> None:
        self._listener = listener
        self._workers = workers
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._waiting: socket.socket | None = None
        """An accepted connection that no worker has taken yet."""

    def start(self) -> None:
        """Start listening. Raises OSError."""
        self._listener.listen(BACKLOG)
        self._loop.add_reader(self._listener, self._accept)

    def stop(self) -> None:
        """Close the socket."""
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
        """Pass a connection to a worker; return False if none takes it."""
        ready = sorted((each for each in self._workers() if each.accepts_connections), key=lambda each: each.open)
        return any(each.hand(sock.fileno()) for each in ready)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)
        if self._waiting is not None:
            self._accept()
