"""The HTTP server: listening, detection of protocols, and graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from msgspec import Struct

from steersman.net.accept_loop import BACKLOG
from steersman.net.acceptor import Acceptor, PendingConnection
from steersman.net.connection import Connection, Core
from steersman.net.fields import FieldCache
from steersman.net.http1 import exchange as http1_exchange
from steersman.net.http1.connection import Http1Connection
from steersman.net.http2 import hpack
from steersman.net.http2.connection import Http2Connection
from steersman.net.http2.frames import PREFACE
from steersman.net.limits import Limits
from steersman.net.message import Handler
from steersman.net.tls import ServerTLS
from steersman.work import upkeep

_LONGEST_CHECK_INTERVAL: Final = 5.0
_CHECKED: Final = 500
"""Connections that are checked in one iteration of the event loop."""
_LONGEST_CLOSE: Final = 5.0
_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")
_PLAIN_HTTP: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


class Statistics(Struct, frozen=True):
    """Statistics of a server. All but `open_*` and `running` count since the start."""

    open_http1: int
    open_http2: int
    open_streams: int
    """HTTP/2 requests open now."""
    running: int
    """Requests whose handler is running."""
    requests: int
    accepted: int
    refused: int
    """Connections closed at once because the limit was reached."""
    tls_handshake_errors: int


class HttpServer:
    """Server of HTTP/1.1 and HTTP/2 with one handler.

    Over TLS, ALPN decides the protocol; on a plain connection a client may begin with HTTP/2 directly (prior
    knowledge). With `eager`, the part of a handler before its first wait runs in the iteration of the event loop in
    which the request arrived (`net.eager` has the resulting rule for handlers).
    """

    def __init__(
        self, handler: Handler, *, limits: Limits | None = None, tls: ServerTLS | None = None, eager: bool = True
    ) -> None:
        self._handler = handler
        self._limits = limits or Limits()
        self._tls = tls
        self._eager = eager
        self.core: Core | None = None
        self._listener: asyncio.Server | Acceptor | None = None
        self._checks: asyncio.Handle | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, shares_port: bool = False) -> tuple[str, int]:
        """Listen and return the address.

        Port 0 takes a free one; "", "0.0.0.0" and "::" are all addresses of both families, as in Go. Other processes
        may listen on the same port if all of them set `shares_port` (SO_REUSEPORT). Raises OSError, and RuntimeError at
        a second call.
        """
        core = self._new_core()
        sock = listening_socket(host, port, shares_port=shares_port)
        try:
            self._listener = await self._listen(core, sock)
        except BaseException:
            sock.close()
            raise
        self.core = core
        self._check()
        address = sock.getsockname()
        return str(address[0]), int(address[1])

    async def _listen(self, core: Core, sock: socket.socket) -> asyncio.Server | Acceptor:
        """Start accepting connections on `sock`. Raises OSError."""
        if self._tls is None:
            create = cast(Callable[..., "asyncio.Future[asyncio.Server]"], core.loop.create_server)
            return await create(lambda: _Accepted(core), sock=sock, backlog=BACKLOG)
        return self._acceptor(core, self._tls, sock)

    def _acceptor(self, core: Core, tls: ServerTLS, sock: socket.socket | None) -> Acceptor:
        """Return the acceptor of TLS connections; without `sock` it does not listen. Raises OSError."""
        limits, loop = self._limits, core.loop
        connect = cast(Callable[..., Coroutine[Any, Any, object]], loop.connect_accepted_socket)

        def shake_hands(pending: PendingConnection, sock: socket.socket) -> Coroutine[Any, Any, object]:
            return connect(
                lambda: _Accepted(core, pending),
                sock,
                ssl=tls.context,
                ssl_handshake_timeout=limits.header_timeout,
                ssl_shutdown_timeout=limits.tls_shutdown_timeout,
            )

        return Acceptor(core, sock, shake_hands)

    def begin(self) -> None:
        """Start without listening: `take` passes connections in. Raises RuntimeError at a second call."""
        self.core = self._new_core()
        if self._tls is not None:
            self._listener = self._acceptor(self.core, self._tls, None)
        self._check()

    def serve_socket(self, sock: socket.socket) -> None:
        """Serve a TCP connection that another process has accepted; close it if the server has stopped."""
        if isinstance(self._listener, Acceptor):
            self._listener.register(sock)
        else:
            sock.close()

    @property
    def connections(self) -> int:
        """Number of open connections, handshakes included."""
        return 0 if self.core is None else len(self.core.connections)

    def accept(self) -> asyncio.Protocol:
        """Return a protocol for a new connection. Raises RuntimeError if the server has not started or has stopped."""
        if self.core is None or self.core.draining:
            raise RuntimeError("the server accepts no connections")
        return _Accepted(self.core)

    def _new_core(self) -> Core:
        if self.core is not None:
            raise RuntimeError("the server has been started already")
        return Core(
            self._handler,
            self._limits,
            asyncio.get_running_loop(),
            eager=self._eager,
            h1_fields=FieldCache(http1_exchange.field),
            h2_fields=FieldCache(hpack.field),
        )

    def _check(self) -> None:
        """Check the waits of all connections, periodically."""
        assert self.core is not None
        self._check_some(list(self.core.connections))

    def _check_some(self, connections: list[Connection]) -> None:
        """Check some of the connections; the others follow in later iterations of the event loop."""
        core, limits = self.core, self._limits
        assert core is not None
        now = core.loop.time()
        for connection in connections[-_CHECKED:]:
            if connection in core.connections:
                connection.check(now)
        del connections[-_CHECKED:]
        if connections:
            self._checks = core.loop.call_soon(self._check_some, connections)
            return
        shortest = min(limits.header_timeout, limits.idle_timeout, limits.send_timeout)
        interval = min(_LONGEST_CHECK_INTERVAL, shortest / 4)
        self._checks = upkeep.call_later(core.loop, interval, self._check)

    async def send_elsewhere(self, timeout: float) -> None:
        """Stop listening, ask clients to use other connections, and answer requests on the open ones meanwhile.

        Returns when all connections are closed, at the latest after `timeout` seconds.
        """
        core = self.core
        if core is None:
            return
        for connection in self._taking_leave(core):
            connection.send_elsewhere()
        deadline = core.loop.time() + timeout
        while core.connections and (left := deadline - core.loop.time()) > 0:
            await core.wait_for_change(left)

    def begin_drain(self) -> None:
        """Stop listening, and have each connection close after its requests in flight."""
        if self.core is not None:
            for connection in self._taking_leave(self.core):
                connection.shut_down()

    def _taking_leave(self, core: Core) -> list[Connection]:
        """Stop listening, mark the server as draining, and return the open connections."""
        self._stop_listening()
        core.draining = True
        return list(core.connections)

    async def drain(self, timeout: float) -> None:
        """Stop listening, let requests in flight finish for at most `timeout` seconds, then close."""
        core = self.core
        if core is None:
            return
        self.begin_drain()
        deadline = core.loop.time() + timeout
        while core.connections and (left := deadline - core.loop.time()) > 0:
            await core.wait_for_change(left)
        await self.close()

    async def close(self) -> None:
        """Close all connections at once; requests in flight are cancelled and have some seconds to clean up."""
        core = self.core
        if core is None:
            return
        self._stop_listening()
        core.draining = True
        if self._checks is not None:
            self._checks.cancel()
            self._checks = None
        for connection in list(core.connections):
            connection.abort()
        deadline = core.loop.time() + _LONGEST_CLOSE
        while (core.connections or core.counters.running) and (left := deadline - core.loop.time()) > 0:
            await core.wait_for_change(left)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def statistics(self) -> Statistics:
        """Return counts for metrics."""
        core = self.core
        if core is None:
            return Statistics(0, 0, 0, 0, 0, 0, 0, 0)
        counters = core.counters
        return Statistics(
            open_http1=counters.open["http/1.1"],
            open_http2=counters.open["h2"],
            open_streams=counters.streams,
            running=counters.running,
            requests=counters.requests,
            accepted=counters.accepted,
            refused=counters.refused,
            tls_handshake_errors=counters.tls_handshake_errors,
        )


def listening_socket(host: str, port: int, *, shares_port: bool) -> socket.socket:
    """Return a bound socket; address and port are those of `HttpServer.start`. Raises OSError."""
    is_any = host in _ANY_ADDRESS
    if is_any:
        has_both = socket.has_dualstack_ipv6()
        family, host = (socket.AF_INET6, "::") if has_both else (socket.AF_INET, "0.0.0.0")
    else:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not is_any))
        sock.setblocking(False)
        sock.bind((host, port))
    except BaseException:
        sock.close()
        raise
    return sock


class _Accepted(asyncio.Protocol):
    """A connection whose protocol is not known yet. Over TLS it replaces its PendingConnection."""

    def __init__(self, core: Core, pending: PendingConnection | None = None) -> None:
        self.core = core
        self._arrival = pending
        self._transport: asyncio.Transport | None = None
        self._first = b""
        self._since = core.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        core = self.core
        core.counters.accepted += 1
        self._transport = cast(asyncio.Transport, transport)
        if self._arrival is not None:
            core.connections.discard(self._arrival)
            self._arrival = None
        if core.is_full:
            core.counters.refused += 1
            self._transport.abort()
            return
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.plain_http:
            self._answer_plain_http(sock)
        elif tls is not None:
            self._become(Http2Connection(core) if tls.selected_alpn_protocol() == "h2" else Http1Connection(core), b"")
        else:
            core.connections.add(self)

    def _answer_plain_http(self, sock: socket.socket) -> None:
        """Answer in plain text, as Go does, that the server speaks TLS, and close."""
        self.core.counters.tls_handshake_errors += 1
        # The transport would encrypt. The socket is still unused, so it accepts these few bytes at once.
        with contextlib.suppress(OSError):
            os.write(sock.fileno(), _PLAIN_HTTP)
        self.abort()

    def data_received(self, data: bytes) -> None:
        self._first += data
        if self._first.startswith(PREFACE[:16]):
            self._become(Http2Connection(self.core), self._first)
        elif not PREFACE.startswith(self._first[:16]):
            self._become(Http1Connection(self.core), self._first)

    def _become(self, connection: Http1Connection | Http2Connection, first: bytes) -> None:
        transport = self._transport
        assert transport is not None
        self.core.remove(self)
        self._transport = None
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if first:
            connection.data_received(first)

    def connection_lost(self, exc: Exception | None) -> None:
        self.core.remove(self)
        self._transport = None

    def check(self, now: float) -> None:
        if now - self._since > self.core.limits.header_timeout:
            self.abort()

    def send_elsewhere(self) -> None:
        """Do nothing: the protocol is not known yet. The connection will see that the server is draining."""

    def shut_down(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
