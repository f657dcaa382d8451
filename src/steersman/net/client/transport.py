"""Requests to other servers with one TLS configuration, as Go's http.Transport makes them.

Connections are pooled by address, stale ones are detected, and the proxies of the environment are used. Every outgoing
request of this server passes through here; connections for upgrades are dialled here too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from steersman.net.client.answer import Answer, BadAnswer
from steersman.net.client.connection_pool import ConnectionPool
from steersman.net.client.dial import dial, host_port
from steersman.net.client.egress import Dial
from steersman.net.client.http1 import send
from steersman.net.client.http2.answer import NotProcessed
from steersman.net.client.http2.connection import Http2Connection
from steersman.net.client.proxy_environment import Proxies, ProxyEnvironment
from steersman.net.client.tls import HTTP1, HTTP2, ClientTLS, Protocols, offered
from steersman.net.client.tunnel import authorization, dial_proxy, dial_through
from steersman.net.upgrade import UpgradedConnection
from steersman.work.backoff import Backoff

MOST_ADDRESSES: Final = 256
"""Limit of addresses with pooled connections; the least recently used one is evicted."""
_HUNG_UP: Final = frozenset({"EOF", "write: broken pipe", "unexpected EOF"})
"""Errors of a request on a connection that the other side had closed."""
_MOST_ATTEMPTS: Final = 7
_BACKOFF: Final = Backoff(1.0, jitter=0.1)
_REPLAYED: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods whose requests may be sent twice."""


Way = Callable[[ssl.SSLContext | None, str], Awaitable[UpgradedConnection]]
"""(TLS context, server name) -> a connection, with TLS if a context is given and the other side is a different process.
Raises DialError.
"""


class Address(NamedTuple):
    """The destination of requests; without `secure` there is no TLS.

    `addresses` are addresses of `host` that were resolved and checked before. `way` makes the connection if the
    destination is not an address of the network.
    """

    host: str
    port: int
    secure: bool = True
    addresses: tuple[str, ...] = ()
    way: Way | None = None


class Sender(Protocol):
    """Interface for sending requests."""

    def close(self) -> None:
        """Close pooled connections."""

    async def send(
        self,
        address: Address,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None,
        *,
        chunked: bool = False,
        whole: bytes = b"",
        again: bool | None = None,
    ) -> Answer:
        """Send a request and return its answer. See Transport.send."""
        ...


class Dialer(Sender, Protocol):
    """Interface for sending requests, and for connections of upgraded protocols."""

    async def dial(self, address: Address) -> UpgradedConnection:
        """Return a new connection. See Transport.dial."""
        ...


Locate = Callable[[Address], Awaitable[Address]]
"""Function that resolves a nominal address to the address to connect to. Raises DialError."""


Nearby = Callable[[Address], Way | None]
"""Function that returns the way to an address outside the network, or None for an address of the network."""


class Transport:
    """Sender of requests to any address.

    `tls` returns the context for new connections; when it returns a different one, pooled connections are closed.
    `server_name` is the name for TLS if it differs from the host of the address. `protocols` are offered for requests
    (ALPN). An address with a way from `nearby` is reached without a proxy. `leave`, if given, makes all connections
    instead of `dial`, without the proxies of the environment.
    """

    def __init__(
        self,
        tls: ClientTLS,
        server_name: str = "",
        proxies: Proxies | None = None,
        *,
        protocols: Protocols = HTTP1,
        locate: Locate | None = None,
        nearby: Nearby | None = None,
        leave: Dial | None = None,
    ) -> None:
        self._tls = tls
        self._server_name = server_name
        self._proxies: Proxies = proxies or ProxyEnvironment()
        self._protocols = offered(protocols)
        self._locate = locate
        self._nearby = nearby
        self._leave = leave
        self._context: ssl.SSLContext | None = None
        self._pools: dict[Address, ConnectionPool] = {}
        self._is_closed = False

    def close(self) -> None:
        """Close pooled connections; connections of running and later requests are not pooled."""
        self._is_closed = True
        self._close_pools()

    def _close_pools(self) -> None:
        for each in self._pools.values():
            each.close()
        self._pools.clear()

    async def send(
        self,
        address: Address,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None,
        *,
        chunked: bool = False,
        whole: bytes = b"",
        again: bool | None = None,
    ) -> Answer:
        """Send a request and return the answer after its head. Closing the answer returns the connection to the pool.

        The body is an iterator `body` or bytes `whole`. `again` is True if the request may be repeated when a pooled
        connection turns out to be closed; by default the method decides. Raises DialError, BadAnswer, and ValueError
        for text that must not stand in a head.
        """
        goes_on = address.secure or self._leave is not None or self._way(address)
        proxy = None if goes_on else self._proxies.proxy_for("http", address.host, address.port)
        if proxy is not None:  # a proxy needs the full URL
            target = f"http://{host_port(address.host, address.port)}{target}"
            headers = [*headers, *authorization(proxy)]
        if again is None:
            again = method in _REPLAYED and not whole
        connections = self._connections(address)
        attempts = 0
        while True:
            connection, is_old = await connections.acquire()
            try:
                if isinstance(connection, Http2Connection):
                    return await connection.send(method, target, headers, body, whole=whole)
                answer = await send(connection, method, target, headers, body, chunked=chunked, whole=whole)
            except NotProcessed as error:
                await _before_another_attempt(attempts, error)
                attempts += 1
            except BadAnswer as error:
                if not (is_old and again and body is None and str(error) in _HUNG_UP):
                    raise
                # a shared connection may be stale once more: other requests use it too
                again = not isinstance(connection, Http2Connection)
            else:
                answer.keep(partial(connections.release, connection))
                return answer

    async def dial(self, address: Address) -> UpgradedConnection:
        """Return a new HTTP/1.1 connection, without a proxy of the environment. Raises DialError."""
        return await self._dial(address, HTTP1)

    def _connections(self, address: Address) -> ConnectionPool:
        if address.secure:
            context = self._tls(self._protocols)
            if context is not self._context:
                self._close_pools()
                self._context = context
        kept = self._pools.pop(address, None)
        if kept is None:
            kept = ConnectionPool(
                partial(self._connect, address), multiplexes=address.secure and HTTP2[0] in self._protocols
            )
            if self._is_closed:
                kept.close()
            if len(self._pools) >= MOST_ADDRESSES:
                self._pools.pop(next(iter(self._pools))).close()
        self._pools[address] = kept
        return kept

    def _way(self, address: Address) -> Way | None:
        return None if self._nearby is None else self._nearby(address)

    async def _connect(self, address: Address) -> UpgradedConnection:
        if self._leave is not None or self._way(address) is not None:
            return await self._dial(address, self._protocols)
        proxy = self._proxies.proxy_for("https" if address.secure else "http", address.host, address.port)
        if proxy is None:
            return await self._dial(address, self._protocols)
        if not address.secure:
            return await dial_proxy(proxy)
        server_name = self._server_name or address.host
        return await dial_through(proxy, address[:2], self._tls(self._protocols), server_name)

    async def _dial(self, address: Address, protocols: Protocols) -> UpgradedConnection:
        tls = self._tls(protocols) if address.secure else None
        server_name = self._server_name or address.host
        if (way := self._way(address)) is not None:
            return await way(tls, server_name)
        place = address if self._locate is None else await self._locate(address)
        if place.way is not None:
            return await place.way(tls, server_name)
        if self._leave is not None:
            host = place.addresses[0] if place.addresses else place.host
            return await self._leave(host, place.port, tls, server_name)
        return await dial(place.host, place.port, tls, addresses=place.addresses, server_name=server_name)


async def _before_another_attempt(attempts: int, error: NotProcessed) -> None:
    """Wait before another attempt of an unprocessed request; the first retry is immediate.

    Raises BadAnswer if the request cannot be retried.
    """
    if attempts >= _MOST_ATTEMPTS:
        raise error
    if error.begun:
        raise BadAnswer(
            f"http2: Transport: cannot retry err [{error}] after Request.Body was written; define Request.GetBody to "
            "avoid this error"
        ) from None
    if attempts:
        await asyncio.sleep(_BACKOFF.wait(attempts - 1))


async def bounded(answer: Answer, limit: int, seconds: float) -> bytes | None:
    """Return the body of an answer, or None if it is longer than `limit` bytes; close the answer.

    Raises BodyAborted, and TimeoutError after `seconds`.
    """
    try:
        async with asyncio.timeout(seconds):
            data = await answer.read(limit + 1)
    finally:
        await answer.close()
    return data if len(data) <= limit else None
