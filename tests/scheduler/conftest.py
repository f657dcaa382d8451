"""The scheduler, running on a server of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.informer import Informers
from steersman.scheduler.scheduler import Scheduler
from steersman.testing import Environment
from tests.scheduler.scene import Scene


@pytest_asyncio.fixture
async def scene() -> AsyncIterator[Scene]:
    """Run a server and a scheduler."""
    async with Environment() as environment:

        def client(user: UserInfo, manager: str) -> Client:
            server = environment.plane.server
            assert server is not None
            return Client(InProcessTransport(server.handler, environment.plane.token_of(user)), manager)

        of_scheduler = client(UserInfo("system:kube-scheduler"), "kube-scheduler")
        informers = Informers(of_scheduler)
        scheduler = Scheduler(of_scheduler, informers)
        await scheduler.start()
        informers.start()
        yield Scene(client(UserInfo("admin", groups=("system:masters",)), "tests"), scheduler)
        await scheduler.stop()
        await informers.stop()
