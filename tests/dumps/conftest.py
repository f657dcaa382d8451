"""Fixture: client of a server in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.testing import Environment


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    """Yield the administrator's client of a new server."""
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        yield Client(InProcessTransport(server.handler, environment.token()), "tests")
