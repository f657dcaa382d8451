"""The scheduler, running on a server that the tests of a module share."""

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


@pytest_asyncio.fixture(loop_scope="session")
async def scene(shared_environment: Environment) -> AsyncIterator[Scene]:
    """Run a scheduler on a server in its initial state."""

    def client(user: UserInfo, manager: str) -> Client:
        server = shared_environment.plane.server
        assert server is not None
        return Client(InProcessTransport(server.handler, shared_environment.plane.token_of(user)), manager)

    of_scheduler = client(UserInfo("system:kube-scheduler"), "kube-scheduler")
    informers = Informers(of_scheduler)
    scheduler = Scheduler(of_scheduler, informers)
    await scheduler.start()
    informers.start()
    yield Scene(client(UserInfo("admin", groups=("system:masters",)), "tests"), scheduler)
    await scheduler.stop()
    await informers.stop()
