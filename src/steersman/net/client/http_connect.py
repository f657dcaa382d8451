"""Connections to another network through a proxy: HTTP CONNECT over TLS or over a Unix socket.

Follows k8s.io/apiserver `pkg/server/egressselector`, error texts included.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from time import monotonic
from typing import Final, Protocol

from steersman.net.client.dial import (
    DIAL_TIMEOUT,
    Dialed,
    DialError,
    dial,
    dial_secured,
    dial_unix,
    errors_as_go,
    host_port,
)
from steersman.net.client.tunnel import ask_connect
from steersman.net.message import Upgraded
from steersman.net.upgrade import UpgradedConnection

_OWN_HOST: Final = "127.0.0.1"
"""Value of the Host field that upstream sends to every proxy."""


@dataclass(frozen=True, slots=True)
class TLSProxy:
    """A proxy reached over TCP and TLS. `address` is the address from its URL, for messages."""

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
    """Observer of dialling through a proxy, for metrics."""

    def started(self) -> None:
        """Count the start of an attempt."""

    def failed(self, stage: str) -> None:
        """Count a failure, at stage "connect" (proxy not reached) or "proxy" (proxy did not connect to the target)."""

    def succeeded(self, seconds: float) -> None:
        """Record the seconds that a successful attempt took."""


async def direct(host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> UpgradedConnection:
    """Dial without a proxy. Implements Dial."""
    return await dial(host, port, tls, server_name=server_name)


class HTTPConnect:
    """Dialer through a proxy, with a new connection to the proxy for each call. Implements Dial."""

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
            with errors_as_go(f"tcp {target}", server_name or host):
                async with asyncio.timeout(DIAL_TIMEOUT):
                    await dialed.before_tls(lambda connection: self._ask(connection, target))
        except DialError:
            self._events.failed("proxy")
            raise
        self._events.succeeded(monotonic() - began)
        if tls is not None:
            with errors_as_go(f"tcp {target}", server_name or host):
                await dialed.begin_tls(tls, server_name or host)
        assert dialed.connection is not None
        return dialed.connection

    async def _connected(self) -> Dialed:
        """Connect to the proxy. Raises DialError."""
        proxy = self._proxy
        if isinstance(proxy, SocketProxy):
            return await dial_unix(proxy.address)
        return await dial_secured(proxy.host, proxy.port, proxy.tls, proxy.server_name)

    async def _ask(self, connection: Upgraded, target: str) -> None:
        """Ask the proxy to connect to `target`. Raises DialError."""
        via = self._proxy.address
        try:
            status = await ask_connect(connection, target, [("Host", _OWN_HOST)])
        except (DialError, ConnectionResetError, ValueError) as error:
            why = "unexpected EOF" if str(error) == "EOF" or isinstance(error, ConnectionResetError) else error
            raise DialError(f"reading HTTP response from CONNECT to {target} via proxy {via} failed: {why}") from None
        code = status.partition(" ")[0]
        if code != "200":
            raise DialError(f"proxy error from {via} while dialing {target}, code {code}: {status}")
