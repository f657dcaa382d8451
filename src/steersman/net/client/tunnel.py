"""Connections to an HTTP proxy, and tunnels through it (CONNECT, RFC 9110 9.3.6), as Go's transport makes them."""

from __future__ import annotations

import asyncio
import base64
import ssl
from functools import partial
from typing import Final

from steersman.net.client.dial import BeforeTLS, DialError, dial, dial_secured, errors_as_go, host_port
from steersman.net.client.http1 import request_head
from steersman.net.client.proxy_environment import Proxy
from steersman.net.message import Upgraded
from steersman.net.upgrade import UpgradedConnection

CONNECT_TIMEOUT: Final = 60.0
"""Seconds allowed to a proxy for its answer."""
_MOST_HEAD_BYTES: Final = 16 << 10


async def dial_through(
    proxy: Proxy, address: tuple[str, int], tls: ssl.SSLContext, server_name: str
) -> UpgradedConnection:
    """Connect to `address` through the proxy, with TLS to the server. Raises DialError."""
    return await _dial(proxy, tls, server_name, partial(_connect, proxy, address))


async def dial_proxy(proxy: Proxy) -> UpgradedConnection:
    """Connect to the proxy itself, for requests with a full URL. Raises DialError."""
    return await _dial(proxy)


async def _dial(
    proxy: Proxy, tls: ssl.SSLContext | None = None, server_name: str = "", before_tls: BeforeTLS | None = None
) -> UpgradedConnection:
    if proxy.secure and proxy.tls is None:
        raise DialError("proxyconnect tcp: proxies are spoken to without TLS only")
    try:
        if proxy.tls is not None:
            return await _dial_secured(proxy, proxy.tls, tls, server_name, before_tls)
        return await dial(proxy.host, proxy.port, tls, server_name=server_name, before_tls=before_tls)
    except DialError as error:
        text = str(error)
        raise DialError(f"proxyconnect tcp: {text}" if text.startswith("dial tcp") else text) from None


async def _dial_secured(
    proxy: Proxy, proxy_tls: ssl.SSLContext, tls: ssl.SSLContext | None, server_name: str, before_tls: BeforeTLS | None
) -> UpgradedConnection:
    """Connect to a proxy with TLS, and through it with TLS to the server. Raises DialError."""
    dialed = await dial_secured(proxy.host, proxy.port, proxy_tls)
    with errors_as_go(f"tcp {host_port(proxy.host, proxy.port)}", server_name):
        if before_tls is not None:
            await dialed.before_tls(before_tls)
        if tls is not None:
            await dialed.begin_tls(tls, server_name)
    return dialed.upgraded


def authorization(proxy: Proxy) -> list[tuple[str, str]]:
    """Return the Proxy-Authorization field in a list, or [] for a proxy without a user."""
    if proxy.user is None:
        return []
    pair = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
    return [("Proxy-Authorization", f"Basic {pair}")]


async def _connect(proxy: Proxy, address: tuple[str, int], connection: Upgraded) -> None:
    """Ask the proxy to connect to `address`. Raises DialError."""
    target = host_port(*address)
    headers = [("Host", target), *authorization(proxy)]
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            status = await ask_connect(connection, target, headers)
    except TimeoutError:
        raise DialError("net/http: timeout awaiting the proxy's answer to CONNECT") from None
    except ConnectionResetError:
        raise DialError("EOF") from None
    code, _, reason = status.partition(" ")
    if code != "200":
        raise DialError(reason or f"unknown status code {code}")


async def ask_connect(connection: Upgraded, target: str, headers: list[tuple[str, str]]) -> str:
    """Ask a proxy to connect to `target`; return the code and reason of its answer.

    Raises DialError for a malformed answer or bytes after it, and ConnectionResetError.
    """
    await connection.write(request_head("CONNECT", target, headers))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = await connection.read()
        if not data:
            raise DialError("EOF")
        head += data
        if len(head) > _MOST_HEAD_BYTES or b"\r\n\r\n" in head[:-4]:
            raise DialError("malformed answer of the proxy to CONNECT")
    return head.partition(b"\r\n")[0].decode("latin-1").partition(" ")[2]
