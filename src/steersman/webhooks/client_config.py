"""Endpoints of webhooks that API objects configure by a URL or a Service, with a CA bundle.

Follows apiserver `util/webhook.ClientConfig`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from steersman.api.admissionregistration import v1 as admissionregistration
from steersman.api.apiextensions import v1 as apiextensions
from steersman.machinery.errors.status import StatusError
from steersman.net.ascii import lower
from steersman.net.client.dial import DialError
from steersman.net.client.egress import USUAL, Egress
from steersman.net.client.own_server import ThisServer
from steersman.net.client.tls import HTTP1, HTTP2, ClientTLS, Protocols, client_context
from steersman.net.client.transport import Address
from steersman.webhooks.kubeconfig import Endpoint, KubeconfigError, Login, always_with, client_tls

LocateService = Callable[[str, str, int], Awaitable[Address]]
"""Function (namespace, name, port) -> the address to connect to. Raises StatusError."""

PORT: Final = 443
_MAX_CONTEXTS: Final = 128
"""Most cached TLS contexts."""
_ITSELF: Final = ("default", "kubernetes")
_OWN_HOST: Final = "kubernetes.default.svc"


class ClientConfig(Struct, frozen=True):
    """Address of a webhook: `service` is (namespace, name); without a service there is a `url`."""

    ca_bundle: bytes = b""
    url: str = ""
    service: tuple[str, str] | None = None
    path: str = ""
    port: int = PORT


def client_config_of(
    config: apiextensions.WebhookClientConfig | admissionregistration.WebhookClientConfig,
) -> ClientConfig:
    """Return the address of a webhook from its configuration in an API object."""
    service = config.service
    if service is None:
        return ClientConfig(config.ca_bundle, config.url or "")
    key = service.namespace, service.name
    return ClientConfig(config.ca_bundle, service=key, path=service.path or "", port=service.port or PORT)


def endpoint_of(
    config: ClientConfig,
    locate: LocateService,
    login: Callable[[str], Login],
    itself: ThisServer | None = None,
    egress: Egress = USUAL,
) -> Endpoint:
    """Return the endpoint of a webhook. Services are dialled through the cluster's egress, URLs through the control
    plane's.

    `login` returns this server's credentials for a host ("name:port"). `itself` is this server, for webhooks that it
    serves itself. The call may take milliseconds, because CA bundles are parsed. Raises KubeconfigError.
    """
    if itself is not None and config.service == _ITSELF and config.port == PORT:
        return _own_endpoint(config.path or "/", itself)
    if config.service is not None:
        namespace, name = config.service
        host, path = f"{name}.{namespace}.svc", config.path or "/"
        credentials = login(f"{host}:{config.port}")
        return Endpoint(
            f"https://{host}:{config.port}{path}",
            Address(host, config.port),
            path,
            _tls(config, credentials, HTTP1),
            host,
            credentials.credentials,
            partial(_locate, locate, namespace, name),
            leave=egress.cluster,
        )
    try:
        url = urlsplit(config.url)
        port = url.port or PORT
    except ValueError as error:
        raise KubeconfigError(f"Unparsable URL: {error}") from None
    target, host = url.path or "/", url.hostname or ""
    if itself is not None and (host, port) == (_OWN_HOST, PORT):
        return _own_endpoint(target, itself)
    credentials = login(f"{host}:{port}")
    protocols = HTTP2 if _is_local(host) else HTTP1
    return Endpoint(
        f"https://{url.netloc}{target}",
        Address(host, port),
        target,
        _tls(config, credentials, protocols),
        host,
        credentials.credentials,
        protocols=protocols,
        leave=egress.control_plane,
    )


def _own_endpoint(target: str, itself: ThisServer) -> Endpoint:
    return Endpoint(
        f"https://{_OWN_HOST}:{PORT}{target}",
        Address(_OWN_HOST, PORT),
        target,
        client_context,
        _OWN_HOST,
        lambda: f"Bearer {itself.token()}",
        sender=itself.sender(),
    )


async def _locate(locate: LocateService, namespace: str, name: str, address: Address) -> Address:
    """Return the current address of a Service. Raises DialError."""
    try:
        return await locate(namespace, name, address.port)
    except StatusError as error:
        raise DialError(error.message) from None


def _is_local(host: str) -> bool:
    """Return True if the host is this machine, where HTTP/2 is offered.

    Other hosts may have several servers. HTTP/2 would send all requests to one of them over a single connection.
    """
    if lower(host) == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(config: ClientConfig, login: Login, protocols: Protocols) -> ClientTLS:
    return _shared_tls(config.ca_bundle, login.certificate, login.key, protocols)


@lru_cache(_MAX_CONTEXTS)
def _shared_tls(authority: bytes, certificate: bytes, key: bytes, protocols: Protocols) -> ClientTLS:
    """Return the TLS context that all webhooks of one CA share: with the system's CAs a context takes a megabyte."""
    return always_with(client_tls(authority, certificate, key, protocols=protocols))
