"""Accepting of TLS connections, and the order in which their handshakes begin.

A handshake is the most expensive operation that an unknown client can cause. It begins only after the client has sent
its first bytes. At most two handshakes begin in one iteration of the event loop: the newest waiting connection, so that
a health probe does not wait behind thousands of older connections, and the oldest, so that none waits for ever.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable

from steersman.net.accept_loop import AcceptLoop
from steersman.net.connection import Core

log = logging.getLogger("steersman.net")


class PendingConnection:
    """A connection whose handshake is not complete."""

    def __init__(self, acceptor: Acceptor, sock: socket.socket, since: float) -> None:
        self._acceptor = acceptor
        self._since = since
        self.sock: socket.socket | None = sock
        """The socket; None once the handshake has begun or the connection is closed."""
        self.handshake: asyncio.Task[None] | None = None

    def check(self, now: float) -> None:
        """Close the connection if the client has sent nothing within the header timeout."""
        if self.sock is not None and now - self._since > self._acceptor.core.limits.header_timeout:
            self.abort()

    def send_elsewhere(self) -> None:
        """Do nothing: the protocol is not known yet. The connection learns of the draining when its handshake is
        over.
        """

    def shut_down(self) -> None:
        """Close the connection, on which no request has begun."""
        self.abort()

    def abort(self) -> None:
        """Close the connection at once and cancel its handshake."""
        self._acceptor.core.remove(self)
        sock = self.release_socket()
        if sock is not None:
            sock.close()
        elif self.handshake is not None:
            self.handshake.cancel()

    def release_socket(self) -> socket.socket | None:
        """Return the socket and stop watching it for input; return None if the socket was handed over before."""
        sock, self.sock = self.sock, None
        if sock is not None:
            self._acceptor.core.loop.remove_reader(sock)
        return sock

    def on_input(self) -> None:
        """Queue the handshake: the client has sent something or has hung up."""
        if self.sock is not None:
            self._acceptor.core.loop.remove_reader(self.sock)
            self._acceptor.queue_handshake(self)


class Acceptor:
    """Acceptor of connections on a socket.

    `shake_hands` performs the handshake of one connection and raises OSError if the handshake fails.
    """

    def __init__(
        self,
        core: Core,
        listener: socket.socket | None,
        shake_hands: Callable[[PendingConnection, socket.socket], Awaitable[object]],
    ) -> None:
        """Listen on `listener`; without a listener, only sockets passed to `take` are served. Raises OSError if the
        socket cannot listen.
        """
        self.core = core
        self._shake_hands = shake_hands
        self._ready: deque[PendingConnection] = deque()
        """Connections on which something has arrived, in order of pending."""
        self._scheduled = False
        self._accepting: AcceptLoop | None = None
        if listener is not None:
            self._accepting = AcceptLoop(core.loop, listener, self.register, core.input_queue.clock)
            self._accepting.start()

    def close(self) -> None:
        """Stop accepting connections and close the listening socket."""
        if self._accepting is not None:
            self._accepting.close()

    def queue_handshake(self, pending: PendingConnection) -> None:
        """Queue `pending` for its handshake in a later iteration of the event loop."""
        self._ready.append(pending)
        if not self._scheduled:
            self._scheduled = True
            self.core.loop.call_soon(self._start_handshakes)

    def register(self, sock: socket.socket) -> None:
        """Register an accepted socket; close it if the server has reached its limit of connections."""
        core = self.core
        if core.is_full:
            core.counters.refused += 1
            sock.close()
            return
        sock.setblocking(False)
        pending = PendingConnection(self, sock, core.loop.time())
        core.connections.add(pending)
        if _is_heard(sock):
            self.queue_handshake(pending)
        else:
            core.loop.add_reader(sock, pending.on_input)

    def _start_handshakes(self) -> None:
        """Begin the handshakes of the newest and the oldest waiting connection; reschedule itself if others wait."""
        ready = self._ready
        self._start_handshake(ready.pop())
        if ready:
            self._start_handshake(ready.popleft())
        self._scheduled = bool(ready)
        if ready:
            self.core.loop.call_soon(self._start_handshakes)

    def _start_handshake(self, pending: PendingConnection) -> None:
        sock = pending.release_socket()
        if sock is not None:
            pending.handshake = self.core.loop.create_task(self._handshake(pending, sock))

    async def _handshake(self, pending: PendingConnection, sock: socket.socket) -> None:
        try:
            await self._shake_hands(pending, sock)
        except OSError as error:
            self.core.counters.tls_handshake_errors += 1
            log.debug("TLS handshake error: %s", error)
            sock.close()
        finally:
            self.core.remove(pending)
            pending.handshake = None


def _is_heard(sock: socket.socket) -> bool:
    """Return True if the socket has input to read, end of file included."""
    try:
        sock.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True  # the handshake will report the error
    return True
