"""Accepting of connections on a listening socket."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from time import monotonic
from typing import Final

from steersman.net.time_slices import SLICE

log = logging.getLogger("steersman.net")

BACKLOG: Final = 4096
_REST: Final = 1.0
"""Seconds without accepting after `accept` has failed, for example for lack of file descriptors."""
_PAUSE: Final = 0.02
"""Seconds without accepting after a connection was given back; others wait in the socket's backlog."""


class AcceptLoop:
    """Passes the connections of a listening socket to `take`, for one time slice in each turn of the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        take: Callable[[socket.socket], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._take = take
        self._clock = clock
        self._resting: asyncio.TimerHandle | None = None
        self._given_back: socket.socket | None = None

    def start(self) -> None:
        """Listen and accept. Raises OSError if the socket cannot listen."""
        self._listener.listen(BACKLOG)
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Stop accepting connections and close the listening socket."""
        if self._resting is not None:
            self._resting.cancel()
        if self._given_back is not None:
            self._given_back.close()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def give_back(self, sock: socket.socket) -> None:
        """Pause accepting, as nothing can serve `sock` now; afterwards `sock` is passed to `take` again."""
        self._given_back = sock
        self._rest(_PAUSE)

    def _accept(self) -> None:
        end = self._clock() + SLICE
        try:
            while self._resting is None and self._clock() < end:
                sock = self._given_back or self._listener.accept()[0]
                self._given_back = None
                self._take(sock)
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            log.error("accepting connections failed; retrying in one second: %s", error)
            self._rest(_REST)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._resting = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._resting = None
        self._loop.add_reader(self._listener, self._accept)
        self._accept()
