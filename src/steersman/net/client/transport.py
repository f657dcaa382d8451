"""Requests to servers with one configuration of TLS, as Go's http.Transport makes them: connections are kept by
address, old ones are found out, and a proxy is gone through where the environment says so.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final

from steersman.net.client.dial import dial
from steersman.net.client.http_client import Answer, BadAnswer, send
from steersman.net.client.kept import KeptConnections
from steersman.net.client.proxy_environment import ProxyEnvironment
from steersman.net.client.tunnel import dial_through
from steersman.net.upgrade import UpgradedConnection

MOST_ADDRESSES: Final = 256
"""Addresses that connections are kept to; the one that was used least recently is let go."""
_HUNG_UP: Final = frozenset({"EOF", "write: broken pipe"})
"""What a request finds that is sent on a connection that the other side has closed."""
_REPLAYED: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods of requests that may be sent twice."""

Address = tuple[str, int]


class Transport:
    """Sends requests to any address, under one name of the server.

    `tls` gives the context of new connections; when it gives another one, those that are kept are closed.
    """

    def __init__(
        self, tls: Callable[[], ssl.SSLContext], server_name: str, proxies: ProxyEnvironment | None = None
    ) -> None:
        self._tls = tls
        self._server_name = server_name
        self._proxies = proxies or ProxyEnvironment()
        self._context: ssl.SSLContext | None = None
        self._kept: dict[Address, KeptConnections] = {}

    def close(self) -> None:
        """Closes the connections that are kept; those that are given back later too."""
        for each in self._kept.values():
            each.close()
        self._kept.clear()

    async def send(
        self, address: Address, method: str, target: str, headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None, *, chunked: bool = False,
    ) -> Answer:  # fmt: skip
        """The answer, its head read. Closing it gives the connection back, if it can carry another request.

        Raises DialError, BadAnswer, and ValueError for what cannot stand in a head.
        """
        connections = self._connections(address)
        while True:
            connection, is_old = await connections.take()
            try:
                answer = await send(connection, method, target, headers, body, chunked=chunked)
            except BadAnswer as error:
                connection.close()
                if is_old and body is None and method in _REPLAYED and str(error) in _HUNG_UP:
                    continue
                raise
            except BaseException:
                connection.close()
                raise
            answer.keep(partial(connections.give_back, connection))
            return answer

    async def dial(self, address: Address) -> UpgradedConnection:
        """A connection of its own, past any proxy. Raises DialError."""
        return await dial(*address, self._tls(), server_name=self._server_name)

    def _connections(self, address: Address) -> KeptConnections:
        context = self._tls()
        if context is not self._context:
            self.close()
            self._context = context
        kept = self._kept.pop(address, None)
        if kept is None:
            kept = KeptConnections(partial(self._connect, address))
            if len(self._kept) >= MOST_ADDRESSES:
                self._kept.pop(next(iter(self._kept))).close()
        self._kept[address] = kept
        return kept

    async def _connect(self, address: Address) -> UpgradedConnection:
        proxy = self._proxies.of("https", *address)
        if proxy is None:
            return await self.dial(address)
        return await dial_through(proxy, address, self._tls(), self._server_name)


async def bounded(answer: Answer, limit: int, seconds: float) -> bytes | None:
    """The body of an answer, None if it is longer than `limit` bytes; closes the answer.

    Raises BodyAborted, and TimeoutError if it takes longer.
    """
    try:
        async with asyncio.timeout(seconds):
            data = await answer.read(limit + 1)
    finally:
        await answer.close()
    return data if len(data) <= limit else None
