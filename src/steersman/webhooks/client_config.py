"""Webhooks as their configurations in the API name them: by a URL or a Service, with a bundle of authorities
(apiserver `util/webhook.ClientConfig`)."""

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
from steersman.webhooks.kubeconfig import Endpoint, KubeconfigError, Login, client_tls, fixed

LocateService = Callable[[str, str, int], Awaitable[Address]]
"""(namespace, name, port) -> where a connection is made to. Raises StatusError."""

PORT: Final = 443
_MOST_CONTEXTS: Final = 128
"""Of TLS, that are kept for others."""
_ITSELF: Final = ("default", "kubernetes")
_OWN_HOST: Final = "kubernetes.default.svc"


class ClientConfig(Struct, frozen=True):
    """Where a webhook is. `service` is (namespace, name); without one there is a `url`."""

    ca_bundle: bytes = b""
    url: str = ""
    service: tuple[str, str] | None = None
    path: str = ""
    port: int = PORT


def client_config_of(
    given: apiextensions.WebhookClientConfig | admissionregistration.WebhookClientConfig,
) -> ClientConfig:
    """Where a configuration in the API says that its webhook is."""
    service = given.service
    if service is None:
        return ClientConfig(given.ca_bundle, given.url or "")
    key = service.namespace, service.name
    return ClientConfig(given.ca_bundle, service=key, path=service.path or "", port=service.port or PORT)


def endpoint_of(
    config: ClientConfig,
    locate: LocateService,
    login: Callable[[str], Login],
    itself: ThisServer | None = None,
    egress: Egress = USUAL,
) -> Endpoint:
    """The endpoint of a webhook; `login` says who this server is to a host ("name:port"). A Service is in the cluster's
    network, a URL in the control plane's.

    It may take milliseconds, as authorities are read. Raises KubeconfigError.
    """
    if itself is not None and config.service == _ITSELF and config.port == PORT:
        return _own_endpoint(config.path or "/", itself)
    if config.service is not None:
        namespace, name = config.service
        host, path = f"{name}.{namespace}.svc", config.path or "/"
        known = login(f"{host}:{config.port}")
        return Endpoint(
            f"https://{host}:{config.port}{path}",
            Address(host, config.port),
            path,
            _tls(config, known, HTTP1),
            host,
            known.credentials,
            partial(_located, locate, namespace, name),
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
    known = login(f"{host}:{port}")
    protocols = HTTP2 if _is_local(host) else HTTP1
    return Endpoint(
        f"https://{url.netloc}{target}",
        Address(host, port),
        target,
        _tls(config, known, protocols),
        host,
        known.credentials,
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


async def _located(locate: LocateService, namespace: str, name: str, address: Address) -> Address:
    """Where a Service is reached now. Raises DialError."""
    try:
        return await locate(namespace, name, address.port)
    except StatusError as error:
        raise DialError(error.message) from None


def _is_local(host: str) -> bool:
    """Whether HTTP/2 is offered: over one connection, requests to another host would not be spread over its servers."""
    if lower(host) == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(config: ClientConfig, login: Login, protocols: Protocols) -> ClientTLS:
    return _shared_tls(config.ca_bundle, login.certificate, login.key, protocols)


@lru_cache(_MOST_CONTEXTS)
def _shared_tls(authority: bytes, certificate: bytes, key: bytes, protocols: Protocols) -> ClientTLS:
    """The same context for all webhooks of one authority: with those of the system one takes a megabyte."""
    return fixed(client_tls(authority, certificate, key, protocols=protocols))
