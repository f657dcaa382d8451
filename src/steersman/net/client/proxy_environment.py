"""Selection of an HTTP proxy by environment variables, as Go's httpproxy does it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from steersman.net.ascii import is_digits, lower

_PORTS: Final = {"http": 80, "https": 443}


class Proxy(Struct, frozen=True):
    """A proxy for tunnels; `secure` if it is reached by HTTPS, with the TLS context `tls`."""

    host: str
    port: int
    secure: bool = False
    user: str | None = None
    password: str = ""
    tls: ssl.SSLContext | None = None


class Proxies(Protocol):
    """Choice of a proxy for a server."""

    def proxy_for(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy for a server, or None for a direct connection."""
        ...


class OneProxy(Struct, frozen=True):
    """One proxy for all servers. Implements Proxies."""

    proxy: Proxy

    def proxy_for(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy."""
        return self.proxy


class ProxyEnvironment:
    """Proxy settings from HTTP_PROXY, HTTPS_PROXY and NO_PROXY or their lower-case names, read once at construction."""

    def __init__(self, variables: Mapping[str, str] = os.environ) -> None:
        self._of_scheme = {
            "http": _proxy(_either(variables, "HTTP_PROXY")),
            "https": _proxy(_either(variables, "HTTPS_PROXY")),
        }
        if variables.get("REQUEST_METHOD"):  # in a CGI program, HTTP_PROXY is set by the client's header field Proxy
            self._of_scheme["http"] = None
        self._direct = [] if not any(self._of_scheme.values()) else list(_exceptions(_either(variables, "NO_PROXY")))

    def proxy_for(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy for a server, or None for a direct connection."""
        proxy = self._of_scheme.get(scheme)
        if proxy is None or host == "localhost":
            return None
        address = _address(host)
        if address is not None and address.is_loopback:
            return None
        return None if any(each.matches(lower(host), port, address) for each in self._direct) else proxy


def _either(variables: Mapping[str, str], name: str) -> str:
    return variables.get(name) or variables.get(lower(name)) or ""


def _proxy(text: str) -> Proxy | None:
    """Return None without a proxy and for an unusable one: only HTTP and HTTPS proxies are supported."""
    if not text:
        return None
    url = _split(text)
    if url is None or not url.scheme or not url.netloc:
        url = _split(f"http://{text}")
    if url is None or url.scheme not in _PORTS or not url.hostname:
        return None
    user = None if url.username is None else unquote(url.username)
    return Proxy(url.hostname, url.port or _PORTS[url.scheme], url.scheme == "https", user, unquote(url.password or ""))


def _split(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        return None
    return url


class _Exception(Struct, frozen=True):
    """An entry of NO_PROXY: everything, a network, an address, or a domain with or without the domain itself."""

    network: IPv4Network | IPv6Network | None = None
    below: str = ""
    itself: str = ""
    port: int = 0

    def matches(self, host: str, port: int, address: IPv4Address | IPv6Address | None) -> bool:
        if self.port and self.port != port:
            return False
        if self.network is not None:
            return address is not None and address in self.network
        if not self.below:
            return True
        return address is None and (host.endswith(self.below) or host == self.itself)


def _exceptions(text: str) -> Iterator[_Exception]:
    entries = [lower(each.strip(" \t\r\n")) for each in text.split(",")]
    if "*" in entries:
        yield _Exception()
        return
    for entry in filter(None, entries):
        network = _network(entry) if "/" in entry else None
        if network is not None:
            yield _Exception(network)
            continue
        host, port = _host_and_port(entry)
        address = _address(host)
        if address is not None:
            yield _Exception(ip_network(address), port=port)
        elif host := host.removeprefix("*") if host.startswith("*.") else host:
            itself = "" if host.startswith(".") else host
            yield _Exception(None, f".{itself}" if itself else host, itself, port)


def _host_and_port(entry: str) -> tuple[str, int]:
    if entry.count(":") == 1 or entry.startswith("["):
        host, _, port = entry.rpartition(":")
        if host and is_digits(port):
            return host.removeprefix("[").removesuffix("]"), int(port)
    return entry, 0


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None
