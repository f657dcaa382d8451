"""Connections by way of a proxy that leads into another network: HTTP CONNECT over TLS or over a Unix socket.

Follows k8s.io/apiserver `pkg/server/egressselector`, with its words.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from time import monotonic
from typing import Final, Protocol

from steersman.net.client.dial import DIAL_TIMEOUT, Dialed, DialError, dial, dial_unix, host_port, resolve, told_as_go
from steersman.net.client.tunnel import ask_connect
from steersman.net.message import Upgraded
from steersman.net.upgrade import UpgradedConnection

_OWN_HOST: Final = "127.0.0.1"
"""What upstream says to any proxy in the field Host."""


@dataclass(frozen=True, slots=True)
class TLSProxy:
    """A proxy that is spoken to over TCP and TLS. `address` is as its URL has it, for messages."""

    host: str
    port: int
    address: str
    tls: ssl.SSLContext
    server_name: str


@dataclass(frozen=True, slots=True)
class SocketProxy:
    """A proxy at a Unix socket."""

    address: str


class TunnelEvents(Protocol):
    """Is told what becomes of tunnels."""

    def started(self) -> None:
        """One is being made."""

    def failed(self, stage: str) -> None:
        """It cannot be: at "connect" the proxy was not reached, at "proxy" it did not lead on."""

    def made(self, seconds: float) -> None:
        """It took so long."""


async def direct(host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> UpgradedConnection:
    """See Dial."""
    return await dial(host, port, tls, server_name=server_name)


class HTTPConnect:
    """Dials by way of a proxy, a new connection to it each time; see Dial."""

    def __init__(self, proxy: TLSProxy | SocketProxy, events: TunnelEvents) -> None:
        self._proxy = proxy
        self._events = events

    async def __call__(self, host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> UpgradedConnection:
        target, began = host_port(host, port), monotonic()
        self._events.started()
        try:
            dialed = await self._connected()
        except DialError:
            self._events.failed("connect")
            raise
        try:
            with told_as_go(f"tcp {target}", server_name or host):
                async with asyncio.timeout(DIAL_TIMEOUT):
                    await dialed.before_tls(lambda connection: self._ask(connection, target))
        except DialError:
            self._events.failed("proxy")
            raise
        self._events.made(monotonic() - began)
        if tls is not None:
            with told_as_go(f"tcp {target}", server_name or host):
                await dialed.begin_tls(tls, server_name or host)
        assert dialed.connection is not None
        return dialed.connection

    async def _connected(self) -> Dialed:
        """A connection to the proxy. Raises DialError."""
        proxy = self._proxy
        if isinstance(proxy, SocketProxy):
            return await dial_unix(proxy.address)
        loop = asyncio.get_running_loop()
        try:
            addresses = await resolve(proxy.host)
        except DialError as error:
            raise DialError(f"dial tcp: {error}") from None
        failure: DialError | None = None
        for address in addresses:
            try:
                with told_as_go(f"tcp {host_port(address, proxy.port)}", proxy.server_name):
                    async with asyncio.timeout(DIAL_TIMEOUT):
                        _, dialed = await loop.create_connection(lambda: Dialed(loop), address, proxy.port)
                        await dialed.begin_tls(proxy.tls, proxy.server_name)
            except DialError as error:
                failure = failure or error
            else:
                return dialed
        raise failure or DialError(f"dial tcp: lookup {proxy.host}: no such host")

    async def _ask(self, connection: Upgraded, target: str) -> None:
        """Asks for a way to `target`. Raises DialError."""
        via = self._proxy.address
        try:
            status = await ask_connect(connection, target, [("Host", _OWN_HOST)])
        except (DialError, ConnectionResetError, ValueError) as error:
            why = "unexpected EOF" if str(error) == "EOF" or isinstance(error, ConnectionResetError) else error
            raise DialError(f"reading HTTP response from CONNECT to {target} via proxy {via} failed: {why}") from None
        code = status.partition(" ")[0]
        if code != "200":
            raise DialError(f"proxy error from {via} while dialing {target}, code {code}: {status}")
