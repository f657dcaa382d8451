"""Routes of outgoing requests to other servers: the file of `--egress-selector-config-file`.

The file holds an EgressSelectorConfiguration (apiserver.k8s.io); errors have the texts of k8s.io/apiserver
`pkg/server/egressselector`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from steersman.api.apiserver.v1beta1 import (
    Connection,
    EgressSelection,
    EgressSelectorConfiguration,
    TCPTransport,
    TLSConfig,
    Transport,
    UDSTransport,
)
from steersman.controlplane.options import OptionsError
from steersman.machinery.codec.configuration import read_document
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Verbatim, go_json, quote
from steersman.machinery.go.os_errors import reason
from steersman.machinery.go.strings import to_lower
from steersman.machinery.go.urls import redacted_url
from steersman.machinery.metrics import Counter, Histogram, Registry
from steersman.machinery.private_files import read_bounded
from steersman.net.client.egress import Dial, Egress
from steersman.net.client.http_connect import HTTPConnect, SocketProxy, TLSProxy, TunnelEvents, direct
from steersman.net.client.tls import HTTP1, client_context

_NAMES: Final = ("cluster", "controlplane", "etcd")
_OLD_NAMES: Final = {"master": "controlplane"}
_DIRECT, _HTTP_CONNECT, _GRPC = "Direct", "HTTPConnect", "GRPC"
_PATH: Final = field.Path("service", "connection")
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 12.5)


_KINDS: Final = {
    (f"apiserver.k8s.io/{version}", "EgressSelectorConfiguration"): EgressSelectorConfiguration
    for version in ("v1beta1", "v1alpha1")
}


def egress_of(path: str, registry: Registry) -> Egress:
    """Return the egress that a file describes. Raises OptionsError."""
    selections = _read(path)
    if errors := [*_connection_errors(selections), *_name_errors(selections)]:
        raise OptionsError(f"failed to validate egress selector configuration: {field.aggregate(errors)}")
    metrics = _Metrics(registry)
    dials: dict[str, Dial] = {}
    for each in selections:
        name = to_lower(each.name)
        try:
            dials[name] = _dial(each.connection, metrics)
        except (OSError, ValueError) as error:
            raise OptionsError(
                "failed to setup egress selector with config: failed to create dialer for egressSelection "
                f"{quote(name)}: {error}"
            ) from None
    return Egress(dials.get("cluster"), dials.get("controlplane"), is_given=bool(selections))


def _read(path: str) -> list[EgressSelection]:
    """Return the selections of a file. Raises OptionsError."""
    failed = "failed to read egress selector config: "
    try:
        data = read_bounded(Path(path))
    except OSError as error:
        why = f"open {path}: {reason(error)}" if error.errno else error
        raise OptionsError(f"{failed}unable to read egress selector configuration from {quote(path)} [{why}]") from None
    try:
        selections = read_document(data, _KINDS).egress_selections or []
    except DecodeError as error:
        raise OptionsError(f"{failed}{error}") from None
    for each in selections:
        each.name = _OLD_NAMES.get(each.name, each.name)
    return selections


# Validation


def _connection_errors(selections: list[EgressSelection]) -> Iterator[FieldError]:
    for each in selections:
        connection, transport = each.connection, each.connection.transport
        match connection.proxy_protocol:
            case "Direct":
                if transport is not None:
                    yield field.invalid(_PATH / "transport", "direct", "config must be absent for direct connect")
            case "HTTPConnect" | "GRPC" if transport is None:
                yield field.required(_PATH / "transport", f"transport must be set for {connection.proxy_protocol}")
            case "HTTPConnect":
                assert transport is not None
                yield from _http_connect_errors(transport)
            case "GRPC":
                assert transport is not None
                if transport.uds is None:
                    yield field.required(_PATH / "uds", "UDS must be set with GRPC")
                else:
                    yield from _socket_errors(transport.uds)
            case _:
                yield field.not_supported(
                    _PATH / "protocol", connection.proxy_protocol, (_DIRECT, _HTTP_CONNECT, _GRPC)
                )


def _http_connect_errors(transport: Transport) -> Iterator[FieldError]:
    tcp, uds = transport.tcp, transport.uds
    if tcp is not None and uds is not None:
        yield field.invalid(_PATH / "tcp", Verbatim(_shown(tcp)), "TCP and UDS cannot both be set")
    elif tcp is not None:
        yield from _tcp_errors(tcp)
    elif uds is not None:
        yield from _socket_errors(uds)
    else:
        yield field.required(_PATH / "tcp", "One of TCP or UDS must be set")


def _shown(tcp: TCPTransport) -> str:
    """Return the connection as Go prints its internal type."""
    tls, given = "null", tcp.tls_config
    if given is not None:
        members = {
            "CABundle": given.ca_bundle,
            "ClientKey": given.client_key,
            "ClientCert": given.client_cert,
            "TLSServerName": given.tls_server_name,
        }
        tls = "{" + ",".join(f'"{name}":{go_json(value)}' for name, value in members.items()) + "}"
    return f'{{"URL":{go_json(tcp.url)},"TLSConfig":{tls}}}'


def _socket_errors(uds: UDSTransport) -> Iterator[FieldError]:
    if not uds.uds_name:
        yield field.invalid(_PATH / "udsName", "nil", "must be present for UDS connections")


def _tcp_errors(tcp: TCPTransport) -> Iterator[FieldError]:
    if tcp.url.startswith("https://"):
        if tcp.tls_config is None:
            yield field.required(_PATH / "tlsConfig", "TLSConfig must be present when using HTTPS")
        else:
            yield from _tls_errors(tcp.tls_config)
    elif not tcp.url.startswith("http://"):
        yield field.invalid(_PATH / "url", tcp.url, "supported connection protocols are http:// and https://")
    elif tcp.tls_config is not None:
        yield field.invalid(_PATH / "tlsConfig", "nil", "config must not be present when using HTTP")


def _tls_errors(tls: TLSConfig) -> Iterator[FieldError]:
    path = _PATH / "tlsConfig"
    if tls.ca_bundle and not os.path.exists(tls.ca_bundle):
        yield field.invalid(path / "caBundle", tls.ca_bundle, "TLS config ca bundle does not exist")
    for name, file, missing, what in (
        ("clientCert", tls.client_cert, "Using TLS requires clientCert", "cert"),
        ("clientKey", tls.client_key, "Using TLS requires requires clientKey", "key"),
    ):
        if not file:
            yield field.invalid(path / name, "nil", missing)
        elif not os.path.exists(file):
            yield field.invalid(path / name, file, f"TLS client {what} does not exist")


def _name_errors(selections: list[EgressSelection]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, each in enumerate(selections):
        name = to_lower(each.name)
        if name in seen:
            yield field.duplicate(_PATH[index], name)
            continue
        seen.add(name)
        if name not in _NAMES:
            yield field.not_supported(_PATH, name, _NAMES)


# Construction


def _dial(connection: Connection, metrics: _Metrics) -> Dial:
    """Return the dialer of a connection. Raises OSError and ValueError for an unusable one."""
    if connection.proxy_protocol == _DIRECT:
        return direct
    transport = connection.transport
    assert transport is not None
    if connection.proxy_protocol == _GRPC:
        from steersman.net.client.konnectivity import Konnectivity  # which most servers never need

        assert transport.uds is not None
        return Konnectivity(transport.uds.uds_name, metrics.for_transport("uds", "grpc"))
    if transport.uds is not None:
        return HTTPConnect(SocketProxy(transport.uds.uds_name), metrics.for_transport("uds"))
    assert transport.tcp is not None
    return HTTPConnect(_tls_proxy(transport.tcp), metrics.for_transport("tcp"))


def _tls_proxy(tcp: TCPTransport) -> TLSProxy:
    """Return the proxy of a TCP transport. Raises OSError and ValueError."""
    if tcp.tls_config is None:
        raise ValueError(
            f"{redacted_url(tcp.url)}: a proxy over TCP without TLS is not supported"
        )  # kube-apiserver panics
    try:
        url = urlsplit(tcp.url)
        port = url.port
    except ValueError as error:
        raise ValueError(f"invalid proxy server url {quote(redacted_url(tcp.url))}: {error}") from None
    if not url.hostname or port is None:
        raise ValueError(f"invalid proxy server url {quote(redacted_url(tcp.url))}: missing host or port")
    address = url.netloc.rpartition("@")[2]
    return TLSProxy(
        url.hostname, port, address, _context(tcp.tls_config), tcp.tls_config.tls_server_name or url.hostname
    )


def _context(tls: TLSConfig) -> ssl.SSLContext:
    """Return the TLS context for a proxy. Raises ValueError."""
    context = client_context(HTTP1)
    try:
        # Without a password argument OpenSSL would prompt on the terminal for the password of an encrypted key.
        context.load_cert_chain(tls.client_cert, tls.client_key, lambda: "")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"failed to read key pair {tls.client_cert} & {tls.client_key}, got {_reason(error)}"
        ) from None
    try:
        if tls.ca_bundle:
            context.load_verify_locations(cafile=tls.ca_bundle)
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    except ssl.SSLError:
        raise ValueError("failed to append CA cert to the cert pool") from None
    except OSError as error:
        raise ValueError(f"failed to read cert file {tls.ca_bundle}, got {_reason(error)}") from None
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or 'the files cannot be used'}"
    return reason(error) if isinstance(error, OSError) else str(error)


class _Metrics:
    """Metrics of tunnels (apiserver `egressselector/metrics`)."""

    def __init__(self, registry: Registry) -> None:
        labels = ("protocol", "transport")
        self.starts = Counter(
            "apiserver_egress_dialer_dial_start_total", "Dial starts, by the protocol and the transport.", labels
        )
        self.durations = Histogram(
            "apiserver_egress_dialer_dial_duration_seconds",
            "How long dials take, by the protocol and the transport.",
            _BUCKETS,
            labels,
        )
        self.failures = Counter(
            "apiserver_egress_dialer_dial_failure_count",
            "Dials that failed, by the protocol, the transport and the stage.",
            (*labels, "stage"),
        )
        registry.add(self.starts, self.durations, self.failures)

    def for_transport(self, transport: str, protocol: str = "http_connect") -> TunnelEvents:
        """Return the observer for tunnels over a transport."""
        return _Tunnels(self, (protocol, transport))


class _Tunnels:
    def __init__(self, metrics: _Metrics, labels: tuple[str, str]) -> None:
        self._metrics = metrics
        self._labels = labels

    def started(self) -> None:
        self._metrics.starts.inc(self._labels)

    def failed(self, stage: str) -> None:
        self._metrics.failures.inc((*self._labels, stage))

    def succeeded(self, seconds: float) -> None:
        self._metrics.durations.observe(seconds, self._labels)
