"""Standalone scheduler for another API server, as kube-scheduler runs there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from steersman.client.client import Client
from steersman.client.informer import Informers
from steersman.client.leader_election import work_as_leader
from steersman.client.over_tls import TLSTransport
from steersman.scheduler.scheduler import NAME, Scheduler

KUBE_SCHEDULER: Final = "kube-scheduler"
"""User agent and field manager of requests, and name of the leader election lease."""
NAMESPACE: Final = "kube-system"


@dataclass(frozen=True, slots=True)
class Standalone:
    """Options of a standalone scheduler: flags of kube-scheduler."""

    leader_elect: bool = True

    async def run(self, transport: TLSTransport) -> None:
        """Run until cancelled, or until the lease is lost. Raises StatusError, Unreachable at the start."""
        client = Client(transport, KUBE_SCHEDULER)
        try:
            if self.leader_elect:
                work = partial(_work, client)
                await work_as_leader(client, NAMESPACE, KUBE_SCHEDULER, work, component=NAME, host="")
            else:
                await _work(client)
        finally:
            await client.aclose()


async def _work(client: Client) -> None:
    async with AsyncExitStack() as stack:
        informers = Informers(client)
        stack.push_async_callback(informers.stop)
        scheduler = Scheduler(client, informers)
        stack.push_async_callback(scheduler.stop)
        informers.start()
        await scheduler.start()
        await asyncio.Event().wait()
