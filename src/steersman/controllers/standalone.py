"""The controllers against a remote API server, as kube-controller-manager runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from steersman.client.client import Client
from steersman.client.leader_election import work_as_leader
from steersman.client.over_tls import TLSTransport
from steersman.controllers.accounts import NAMESPACE, AccountClients
from steersman.controllers.controller import Controller, Settings
from steersman.controllers.manager import ControllerManager

MANAGER: Final = "kube-controller-manager"
"""User agent and field manager of the controllers, and the name of the leader's lease."""


@dataclass(frozen=True, slots=True)
class Standalone:
    """Configuration of a controller manager with its own process, from flags of kube-controller-manager."""

    settings: Settings
    controllers: Sequence[type[Controller[Any]]]
    use_service_account_credentials: bool = False
    leader_elect: bool = True

    async def run(self, transport: TLSTransport) -> None:
        """Run the controllers until cancelled, or until the lease is lost. Raises StatusError, Unreachable at the
        start.
        """
        client = Client(transport, MANAGER)
        if not self.leader_elect:
            await self._work(transport, client)
            return
        try:
            work = partial(self._work, transport, client)
            await work_as_leader(client, NAMESPACE, MANAGER, work, component=MANAGER)
        finally:
            await client.aclose()

    async def _work(self, transport: TLSTransport, client: Client) -> None:
        async with AsyncExitStack() as stack:
            client_of: Callable[[str], Client] = lambda _: client  # noqa: E731
            if self.use_service_account_credentials:
                accounts = AccountClients(transport, MANAGER)
                stack.push_async_callback(accounts.stop)
                await accounts.prepare({each.account for each in self.controllers if each.account})
                client_of = accounts.client
            manager = ControllerManager(client, client_of, self.settings, self.controllers)
            stack.push_async_callback(manager.stop)
            await manager.start()
            await asyncio.Event().wait()
