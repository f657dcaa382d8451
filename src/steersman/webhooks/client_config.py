"""Webhooks as their configurations in the API name them: by a URL or a Service, with a bundle of authorities
(apiserver `util/webhook.ClientConfig`)."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from steersman.api.admissionregistration import v1 as admissionregistration
from steersman.api.apiextensions import v1 as apiextensions
from steersman.webhooks.kubeconfig import Endpoint, KubeconfigError, Login, client_tls

LocateService = Callable[[str, str, int], Awaitable[tuple[str, int]]]
"""(namespace, name, port) -> host and port to which a connection is made. Raises StatusError."""

PORT: Final = 443


@dataclass(frozen=True, slots=True)
class ClientConfig:
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


def endpoint_of(config: ClientConfig, locate: LocateService, login: Callable[[str], Login]) -> Endpoint:
    """The endpoint of a webhook; `login` says who this server is to a host ("name:port").

    It may take milliseconds, as authorities are read. Raises KubeconfigError.
    """
    if config.service is not None:
        namespace, name = config.service
        host, path = f"{name}.{namespace}.svc", config.path or "/"
        known = login(f"{host}:{config.port}")
        return Endpoint(
            f"https://{host}:{config.port}{path}", host, config.port, path, _tls(config, known),
            host, known.credentials, partial(locate, namespace, name, config.port),
        )  # fmt: skip
    try:
        url = urlsplit(config.url)
        port = url.port or PORT
    except ValueError as error:
        raise KubeconfigError(f"Unparsable URL: {error}") from None
    target, host = url.path or "/", url.hostname or ""
    known = login(f"{host}:{port}")
    return Endpoint(f"https://{url.netloc}{target}", host, port, target, _tls(config, known), host, known.credentials)


def _tls(config: ClientConfig, login: Login) -> ssl.SSLContext:
    return client_tls(config.ca_bundle, login.certificate, login.key)
