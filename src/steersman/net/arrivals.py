"""Connections on their way in over TLS: how they are accepted, and whose handshake begins when.

A handshake is the dearest thing that a stranger may ask for. It begins once the client has said something, two in a
turn of the loop: the newest first, so that a probe does not wait behind the thousands that have come before it, and the
oldest beside it, so that nobody waits for ever.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from steersman.net.connection import Core
from steersman.net.turns import SLICE

log = logging.getLogger("steersman.net")

BACKLOG: Final = 4096
_REST: Final = 1.0
"""Seconds for which nothing is accepted when that has failed: there are no descriptors left, say."""


class Arrival:
    """A connection whose handshake is not over."""

    def __init__(self, arrivals: Arrivals, sock: socket.socket, since: float) -> None:
        self._arrivals = arrivals
        self._since = since
        self.sock: socket.socket | None = sock
        """None once the handshake has begun, or the connection is closed."""
        self.handshake: asyncio.Task[None] | None = None

    def check(self, now: float) -> None:
        """Gives up a client that has said nothing for as long as a head may take."""
        if self.sock is not None and now - self._since > self._arrivals.core.limits.header_timeout:
            self.abort()

    def send_elsewhere(self) -> None:
        """Its protocol is not known yet, and will know that the server is draining."""

    def shut_down(self) -> None:
        """Nothing was asked yet."""
        self.abort()

    def abort(self) -> None:
        """Closes at once."""
        self._arrivals.core.remove(self)
        sock = self.taken()
        if sock is not None:
            sock.close()
        elif self.handshake is not None:
            self.handshake.cancel()

    def taken(self) -> socket.socket | None:
        """The socket, which nobody listens to any more; None if it was taken before."""
        sock, self.sock = self.sock, None
        if sock is not None:
            self._arrivals.core.loop.remove_reader(sock)
        return sock

    def heard(self) -> None:
        """The client has said something, or has gone."""
        if self.sock is not None:
            self._arrivals.core.loop.remove_reader(self.sock)
            self._arrivals.is_ready(self)


class Arrivals:
    """Accepts connections on a socket, and has `shake_hands` begin with each in its turn; OSError is what that raises
    if the handshake fails."""

    def __init__(
        self,
        core: Core,
        listener: socket.socket | None,
        shake_hands: Callable[[Arrival, socket.socket], Awaitable[object]],
    ) -> None:
        """Without a `listener` it only takes what it is given. Raises OSError if the socket cannot listen."""
        self.core = core
        self._listener = listener
        self._shake_hands = shake_hands
        self._ready: deque[Arrival] = deque()
        """Those who have said something, in the order in which they did."""
        self._scheduled = False
        self._resting: asyncio.TimerHandle | None = None
        if listener is not None:
            listener.listen(BACKLOG)
            core.loop.add_reader(listener, self._accept, listener)

    def close(self) -> None:
        """Accepts nothing any more."""
        if self._resting is not None:
            self._resting.cancel()
        if self._listener is not None:
            self.core.loop.remove_reader(self._listener)
            self._listener.close()

    def is_ready(self, arrival: Arrival) -> None:
        """Has a handshake begin in a turn to come."""
        self._ready.append(arrival)
        if not self._scheduled:
            self._scheduled = True
            self.core.loop.call_soon(self._turn)

    def _accept(self, listener: socket.socket) -> None:
        """Accepts what has come, for a slice of this turn."""
        clock = self.core.turns.clock
        end = clock() + SLICE
        try:
            while clock() < end:
                sock, _ = listener.accept()
                self.take(sock)
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            log.error("no connections are accepted for a second: %s", error)
            self.core.loop.remove_reader(listener)
            self._resting = self.core.loop.call_later(_REST, self._go_on, listener)

    def _go_on(self, listener: socket.socket) -> None:
        self._resting = None
        self.core.loop.add_reader(listener, self._accept, listener)

    def take(self, sock: socket.socket) -> None:
        """Takes over a connection that was accepted."""
        core = self.core
        if core.is_full:
            core.counters.refused += 1
            sock.close()
            return
        sock.setblocking(False)
        arrival = Arrival(self, sock, core.loop.time())
        core.connections.add(arrival)
        if _is_heard(sock):
            self.is_ready(arrival)
        else:
            core.loop.add_reader(sock, arrival.heard)

    def _turn(self) -> None:
        """Begins with the newest and with the oldest, who each do the work of a turn to come."""
        ready = self._ready
        self._begin(ready.pop())
        if ready:
            self._begin(ready.popleft())
        self._scheduled = bool(ready)
        if ready:
            self.core.loop.call_soon(self._turn)

    def _begin(self, arrival: Arrival) -> None:
        sock = arrival.taken()
        if sock is not None:
            arrival.handshake = self.core.loop.create_task(self._handshake(arrival, sock))

    async def _handshake(self, arrival: Arrival, sock: socket.socket) -> None:
        try:
            await self._shake_hands(arrival, sock)
        except OSError as error:
            self.core.counters.tls_handshake_errors += 1
            log.debug("TLS handshake error: %s", error)
            sock.close()
        finally:
            self.core.remove(arrival)
            arrival.handshake = None


def _is_heard(sock: socket.socket) -> bool:
    """Whether there is anything to read, be it the end."""
    try:
        sock.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True  # the handshake will tell
    return True
