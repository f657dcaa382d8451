"""Clients with the identity of the controllers' service accounts, on any API server; tokens are renewed in time."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from steersman.api.authentication.v1 import TokenRequest, TokenRequestSpec
from steersman.api.core.v1 import Namespace, ServiceAccount
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_already_exists
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import NAMESPACES, SERVICE_ACCOUNTS, TOKEN_REQUESTS
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.work.periodic import Periodic

logger = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
_TOKEN_SECONDS: Final = 3600
"""Requested lifetime of a token in seconds. It is renewed after four fifths of it."""
_RETRY: Final = 10.0


class AccountClients:
    """Clients of service accounts (kube-controller-manager's `--use-service-account-credentials`).

    `await prepare(names)` first, then `client(name)`; `await stop()` at the end.
    """

    def __init__(self, transport: TLSTransport, manager: str) -> None:
        self._transport = transport
        self._client = Client(transport, manager)
        self._manager = manager
        self._tokens: dict[str, str] = {}
        self._clients: dict[str, Client] = {}
        self._renewal = Periodic(
            "renewal of controllers' tokens", self._renew_all, _TOKEN_SECONDS * 0.8, is_upkeep=False
        )

    async def prepare(self, names: set[str]) -> None:
        """Create the service accounts and their tokens, and start renewing these. Raises StatusError, Unreachable."""
        for name in sorted(names):
            await self._create_account(name)
            await self._renew(name)
        self._renewal.start()

    def client(self, name: str) -> Client:
        """Return the client of a prepared service account."""
        client = self._clients.get(name)
        if client is None:
            transport = self._transport.with_token(lambda: self._tokens[name])
            client = self._clients[name] = Client(transport, self._manager)
        return client

    async def stop(self) -> None:
        """Stop renewing tokens and close all clients. Tokens expire by themselves."""
        await self._renewal.stop()
        for each in self._clients.values():
            await each.aclose()

    async def _create_account(self, name: str) -> None:
        account = ServiceAccount(metadata=ObjectMeta(name=name, namespace=NAMESPACE))
        try:
            await self._client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        except StatusError as error:
            if not is_already_exists(error):
                logger.debug("%s: %s", NAMESPACE, error)  # it exists, or the next request reports what is wrong
        with ignoring(is_already_exists):
            await self._client.create(SERVICE_ACCOUNTS, account)

    async def _renew(self, name: str) -> None:
        request = TokenRequest(spec=TokenRequestSpec(audiences=[], expiration_seconds=_TOKEN_SECONDS))
        issued = await self._client.create_subresource(
            SERVICE_ACCOUNTS, name, NAMESPACE, "token", TOKEN_REQUESTS, request
        )
        self._tokens[name] = issued.status.token

    async def _renew_all(self) -> None:
        for name in self._tokens:
            while True:
                try:
                    await self._renew(name)
                except (StatusError, Unreachable) as error:
                    logger.warning("the token of %s cannot be renewed, it is retried: %s", name, error)
                    await asyncio.sleep(_RETRY)
                else:
                    break
