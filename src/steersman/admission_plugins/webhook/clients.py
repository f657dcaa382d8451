"""Clients of all admission webhooks: one for each endpoint, created at its first call, closed when no configuration
names the endpoint any more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from steersman.net.client.egress import USUAL, Egress
from steersman.net.client.own_server import ThisServer
from steersman.webhooks.client import WebhookClient
from steersman.webhooks.client_config import ClientConfig, LocateService, endpoint_of
from steersman.webhooks.kubeconfig import Login
from steersman.work.offloading import offload_if
from steersman.work.single_flight import Flight

_AGENT: Final = "kube-apiserver-admission"
_MAX_CONCURRENT: Final = 256
"""Most concurrent requests to one webhook."""
MAX_CLIENTS: Final = 512
"""Most clients that are kept. Beyond that the least recently used client is closed."""


class Clients:
    """Cache of webhook clients. `login` returns this server's credentials for a host ("name:port")."""

    def __init__(
        self,
        locate: LocateService,
        login: Callable[[str], Login],
        itself: ThisServer | None = None,
        egress: Egress = USUAL,
    ) -> None:
        self._locate: Final = locate
        self._itself: Final = itself
        self._egress: Final = egress
        self._login: Final = login
        self._clients: dict[ClientConfig, Flight[WebhookClient]] = {}

    async def client_for(self, config: ClientConfig) -> WebhookClient:
        """Return the client of a webhook. Raises KubeconfigError."""
        flight = self._clients.pop(config, None)
        if flight is None or flight.has_failed:
            flight = Flight(partial(self._create, config))
        self._clients[config] = flight  # at the end: the most recently used
        if len(self._clients) > MAX_CLIENTS:
            self._clients.pop(next(iter(self._clients))).on_result(WebhookClient.close)
        return await flight

    async def _create(self, config: ClientConfig) -> WebhookClient:
        # In a worker thread, because parsing the CA bundle takes milliseconds.
        endpoint = await offload_if(True, endpoint_of, config, self._locate, self._login, self._itself, self._egress)
        return WebhookClient(endpoint, None, at_once=_MAX_CONCURRENT, user_agent=_AGENT, passes_trace=True)

    def retain(self, named: frozenset[ClientConfig]) -> None:
        """Close the clients of all webhooks that are not in `named`."""
        for config in self._clients.keys() - named:
            self._clients.pop(config).on_result(WebhookClient.close)

    def close(self) -> None:
        """Close all clients."""
        for flight in self._clients.values():
            flight.on_result(WebhookClient.close)
        self._clients.clear()
