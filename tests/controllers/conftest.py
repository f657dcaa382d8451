"""Fixtures: controllers on a server in its initial state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest_asyncio

from steersman.authentication.user import UserInfo, service_account_groups, service_account_username
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.controllers.controller import Controller, Settings
from steersman.controllers.manager import ControllerManager
from steersman.testing import Environment
from tests.controllers.waiting import Run


@pytest_asyncio.fixture(loop_scope="session")
async def run(shared_environment: Environment) -> AsyncIterator[Run]:
    environment = shared_environment
    async with AsyncExitStack() as stack:

        def client(user: UserInfo, manager: str) -> Client:
            server = environment.plane.server
            assert server is not None
            return Client(InProcessTransport(server.handler, environment.plane.token_of(user)), manager)

        def of_account(name: str) -> Client:
            user = service_account_username("kube-system", name)
            return client(UserInfo(user, groups=service_account_groups("kube-system")), "kube-controller-manager")

        async def start(*controllers: type[Controller[Any]], **settings: Any) -> Client:
            shared = client(UserInfo("system:kube-controller-manager"), "kube-controller-manager")
            settings.setdefault("namespace_deletion_grace", 0)
            manager = ControllerManager(shared, of_account, Settings(**settings), controllers)
            await manager.start()
            stack.push_async_callback(manager.stop)
            return client(UserInfo("admin", groups=("system:masters",)), "tests")

        yield start
