"""Connections to other servers over TCP and TLS, as byte streams. Errors have Go's texts."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address
from typing import Final, cast
from weakref import WeakKeyDictionary

from steersman.net.ascii import lower
from steersman.net.pipe import join
from steersman.net.receiving_protocol import ReceivingProtocol
from steersman.net.upgrade import UpgradedConnection
from steersman.work.offloading import offload_if
from steersman.work.patterns import late_pattern

DIAL_TIMEOUT: Final = 30.0
TLS_HANDSHAKE_TIMEOUT: Final = 10.0
HINT_TIMEOUT: Final = 1.0
"""Seconds allowed for inspecting a certificate that was refused."""
HINT_SECONDS: Final = 30.0
"""Seconds for which the result of an inspection is reused."""
TLS_SHUTDOWN_TIMEOUT: Final = 5.0
"""Seconds allowed for flushing written bytes at the end of TLS; input is discarded meanwhile."""
_WRITE_HIGH_WATER: Final = 256 << 10
_UNKNOWN_AUTHORITY: Final = frozenset({2, 7, 18, 19, 20, 21})
"""OpenSSL's verification codes for a certificate chain that leads to no known authority."""
_OUT_OF_DATE: Final = frozenset({9, 10})
_WRONG_NAME: Final = frozenset({62, 64})
_NUMERIC: Final = late_pattern(r"(0[xX][0-9A-Fa-f]*|[0-9]+)(\.(0[xX][0-9A-Fa-f]*|[0-9]+))*\.?")
_REASONS: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ECONNRESET: "connection reset by peer",
    errno.ETIMEDOUT: "connection timed out",
    errno.EINVAL: "invalid argument",
    errno.EACCES: "permission denied",
    errno.ENOENT: "no such file or directory",
}


BeforeTLS = Callable[[UpgradedConnection], Awaitable[None]]


_hints: Final[WeakKeyDictionary[ssl.SSLContext, tuple[tuple[str, int, str, int], float, str]]] = WeakKeyDictionary()
"""Last inspection of a refused certificate by context: (address, port, host, code), its expiry on the event loop's
clock, and the text.
"""


class DialError(Exception):
    """A connection could not be made; the text is Go's."""


class RefusedCertificate(DialError):
    """The other side's certificate is not trusted; `code` is OpenSSL's verification code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class Dialed(ReceivingProtocol):
    """The asyncio protocol of a dialled connection; passes all events on to an UpgradedConnection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._tls = False
        self._spoke = False
        self._transport: asyncio.Transport | None = None
        self.connection: UpgradedConnection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.connection = UpgradedConnection(self._transport, self._loop, False)

    @property
    def upgraded(self) -> UpgradedConnection:
        """The connection, once it is made."""
        assert self.connection is not None
        return self.connection

    async def before_tls(self, say: BeforeTLS) -> None:
        """Run `say` on the plain connection before TLS begins. Raises the exceptions of `say`."""
        assert self.connection is not None
        try:
            await say(self.connection)
        except BaseException:
            self.connection.close()
            raise
        self._spoke = not self.connection.is_idle

    async def begin_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Start TLS. Raises DialError, OSError and SSLError.

        Bytes that arrived in plain text must not be taken for decrypted ones, so they are an error.
        """
        assert self._transport is not None
        assert self.connection is not None
        self._tls = True
        try:
            if self._spoke:
                raise DialError("tls: first record does not look like a TLS handshake")
            if self._transport.is_closing():
                raise ConnectionResetError(errno.ECONNRESET, "")
            transport = await self._loop.start_tls(
                self._transport,
                self,
                context,
                server_hostname=host,
                ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT,
                ssl_shutdown_timeout=TLS_SHUTDOWN_TIMEOUT,
            )
        except BaseException:
            self._transport.abort()  # the event loop does not close it in every case
            raise
        assert transport is not None
        transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        self.connection.secured(transport)
        self._transport = transport  # a second TLS session may run inside this one

    def data_received(self, data: bytes) -> None:
        assert self.connection is not None
        self._spoke = True
        self.connection.feed(data)

    def eof_received(self) -> bool:
        assert self.connection is not None
        self.connection.eof()
        return not self._tls

    def connection_lost(self, exc: Exception | None) -> None:
        if self.connection is not None:
            self.connection.lost()

    def pause_writing(self) -> None:
        assert self.connection is not None
        self.connection.pause()

    def resume_writing(self) -> None:
        assert self.connection is not None
        self.connection.resume()


def host_port(host: str, port: int) -> str:
    """Return `host:port` as Go's net.JoinHostPort does."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve(host: str) -> list[str]:
    """Return the addresses of a host name; for an IP address, the address itself. Raises DialError.

    The C library also accepts unusual IPv4 notations (`0177.0.0.1`, `127.1`). Go treats them as names that do not
    exist, and so does this function: a checked address cannot mean a different address here.
    """
    if _NUMERIC.fullmatch(host) and not _is_ipv4(host):
        raise DialError(f"lookup {host}: no such host")
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(DIAL_TIMEOUT):
            answers = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise DialError(f"lookup {host}: no such host") from None
    except TimeoutError:
        raise DialError(f"lookup {host}: i/o timeout") from None
    return list(dict.fromkeys(str(each[4][0]) for each in answers))


def _is_ipv4(host: str) -> bool:
    try:
        IPv4Address(host)
    except ValueError:
        return False
    return True


async def dial(
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    *,
    addresses: Sequence[str] = (),
    server_name: str = "",
    before_tls: BeforeTLS | None = None,
) -> UpgradedConnection:
    """Connect to `host`, with TLS if `tls` is given, and return the connection. Raises DialError.

    `addresses` are addresses of the host that the caller has resolved and checked; only these are connected to.
    `server_name` is the name for TLS if it differs from `host`. `before_tls` runs on the plain connection before TLS.
    """
    loop = asyncio.get_running_loop()
    try:
        resolved = list(addresses) or await resolve(host)
    except DialError as error:
        raise DialError(f"dial tcp: {error}") from None
    failure: DialError | None = None
    for address in resolved:
        try:
            protocol = await _connect(loop, address, port, server_name or host, tls, before_tls)
        except RefusedCertificate as error:
            if failure is None and tls is not None:
                more = await _explained(error, loop, address, port, server_name or host, tls, before_tls)
                failure = DialError(more or str(error))
        except DialError as error:
            failure = failure or error
        else:
            assert protocol.connection is not None
            return protocol.connection
    raise failure or DialError(f"dial tcp: lookup {host}: no such host")


async def dial_secured(host: str, port: int, tls: ssl.SSLContext, server_name: str = "") -> Dialed:
    """Connect to `host` with TLS, in which another session of TLS may begin. Raises DialError."""
    loop = asyncio.get_running_loop()
    try:
        addresses = await resolve(host)
    except DialError as error:
        raise DialError(f"dial tcp: {error}") from None
    failure: DialError | None = None
    for address in addresses:
        try:
            return await _connect(loop, address, port, server_name or host, tls, None)
        except DialError as error:
            failure = failure or error
    raise failure or DialError(f"dial tcp: lookup {host}: no such host")


async def dial_unix(path: str) -> Dialed:
    """Connect to a Unix socket; a path that begins with `@` is a name in Linux' abstract namespace. Raises DialError."""
    loop = asyncio.get_running_loop()
    with errors_as_go(f"unix {path}", ""), contextlib.ExitStack() as failed:
        sock = failed.enter_context(socket.socket(socket.AF_UNIX))
        sock.setblocking(False)
        async with asyncio.timeout(DIAL_TIMEOUT):
            await loop.sock_connect(sock, f"\0{path[1:]}" if path.startswith("@") else path)
            _, protocol = await loop.create_unix_connection(lambda: Dialed(loop), sock=sock)
        failed.pop_all()
    return protocol


def connected(accept: Callable[[], asyncio.BaseProtocol], at: tuple[str, int]) -> UpgradedConnection:
    """Return a connection to a server of this process, without a socket; `at` is the server's nominal address."""
    loop = asyncio.get_running_loop()
    protocol = Dialed(loop)
    join(loop, protocol, accept(), at=at)
    assert protocol.connection is not None
    return protocol.connection


async def _connect(
    loop: asyncio.AbstractEventLoop,
    address: str,
    port: int,
    host: str,
    tls: ssl.SSLContext | None,
    before_tls: BeforeTLS | None,
) -> Dialed:
    with errors_as_go(f"tcp {host_port(address, port)}", host):
        async with asyncio.timeout(DIAL_TIMEOUT):
            _, protocol = await loop.create_connection(lambda: Dialed(loop), address, port)
            if before_tls is not None:
                await protocol.before_tls(before_tls)
            if tls is not None:
                await protocol.begin_tls(tls, host)
    return protocol


@contextlib.contextmanager
def errors_as_go(place: str, host: str) -> Iterator[None]:
    """Convert errors of connecting to DialError with Go's texts.

    `place` is the network and address for messages ("tcp 192.0.2.1:443"), `host` the name that the certificate must
    have.
    """
    try:
        yield
    except ssl.SSLError as error:
        text = tls_failure(error, host)
        if isinstance(error, ssl.SSLCertVerificationError):
            raise RefusedCertificate(text, error.verify_code) from None
        raise DialError(text) from None
    except TimeoutError:
        raise DialError(f"dial {place}: i/o timeout") from None
    except ConnectionAbortedError:
        raise DialError("net/http: TLS handshake timeout") from None
    except (OSError, OverflowError, UnicodeError) as error:
        raise DialError(f"dial {place}: connect: {_reason(error)}") from None


async def _explained(
    refused: RefusedCertificate,
    loop: asyncio.AbstractEventLoop,
    address: str,
    port: int,
    host: str,
    tls: ssl.SSLContext,
    before_tls: BeforeTLS | None,
) -> str:
    """Return Go's text for a refused certificate, which quotes the certificate, or "" if the certificate cannot be
    read.

    The function connects again without verification to read the certificate; the result is cached for each context.
    """
    place, now = (address, port, host, refused.code), loop.time()
    known = _hints.get(tls)
    if known is not None and known[0] == place and now < known[1]:
        return known[2]
    found = ""
    try:
        async with asyncio.timeout(HINT_TIMEOUT):
            from steersman.net.client import refused_certificate  # cryptography takes a while to load

            protocol = await _connect(loop, address, port, host, refused_certificate.seeing_context(), before_tls)
            assert protocol.connection is not None
            certificate = protocol.connection.peer_certificate
            protocol.connection.close()
            if refused.code in _UNKNOWN_AUTHORITY:
                authorities = tls.get_ca_certs(binary_form=True)
                more = await offload_if(True, refused_certificate.why_unknown, certificate, authorities)
            elif refused.code in _WRONG_NAME:
                more = await offload_if(True, refused_certificate.why_not_for, certificate, host)
            else:
                more = await offload_if(True, refused_certificate.why_out_of_date, certificate)
            found = f"{_REFUSED}{more}" if more else ""
    except (DialError, TimeoutError):
        return found
    _hints[tls] = place, now + HINT_SECONDS, found
    return found


_REFUSED: Final = "tls: failed to verify certificate: x509: "
_ALERTS: Final = {
    "ACCESS_DENIED": "access denied",
    "BAD_CERTIFICATE": "bad certificate",
    "BAD_RECORD_MAC": "bad record MAC",
    "CERTIFICATE_EXPIRED": "expired certificate",
    "CERTIFICATE_REQUIRED": "certificate required",
    "CERTIFICATE_REVOKED": "revoked certificate",
    "CERTIFICATE_UNKNOWN": "unknown certificate",
    "DECODE_ERROR": "error decoding message",
    "DECRYPT_ERROR": "error decrypting message",
    "HANDSHAKE_FAILURE": "handshake failure",
    "ILLEGAL_PARAMETER": "illegal parameter",
    "INAPPROPRIATE_FALLBACK": "inappropriate fallback",
    "INSUFFICIENT_SECURITY": "insufficient security level",
    "INTERNAL_ERROR": "internal error",
    "MISSING_EXTENSION": "missing extension",
    "NO_APPLICATION_PROTOCOL": "no application protocol",
    "NO_RENEGOTIATION": "no renegotiation",
    "PROTOCOL_VERSION": "protocol version not supported",
    "UNEXPECTED_MESSAGE": "unexpected message",
    "UNKNOWN_CA": "unknown certificate authority",
    "UNRECOGNIZED_NAME": "unrecognized name",
    "UNSUPPORTED_CERTIFICATE": "unsupported certificate",
    "UNSUPPORTED_EXTENSION": "unsupported extension",
    "USER_CANCELLED": "user canceled",
}
"""Go's names of TLS alerts by OpenSSL's names."""


def _reason(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return _REASONS.get(number or 0) or (lower(os.strerror(number)) if number else str(error))


def tls_failure(error: ssl.SSLError, host: str) -> str:
    """Return a description of a failed handshake with `host`, in the words of Go's crypto/tls where it has some."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        if code in _UNKNOWN_AUTHORITY:
            what = "certificate signed by unknown authority"
        elif code in _OUT_OF_DATE:
            what = "certificate has expired or is not yet valid"
        elif code in _WRONG_NAME:
            what = f"certificate is not valid for {host}"
        else:
            what = "certificate cannot be verified"
        return f"{_REFUSED}{what}"
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        return "tls: first record does not look like a TLS handshake"
    alert = re.sub("^(?:SSLV3|TLSV1|TLSV13)_ALERT_", "", error.reason or "")
    return f"remote error: tls: {_ALERTS[alert]}" if alert in _ALERTS else "tls: handshake failure"
