"""Fixtures: a server in this process, and a front on a socket for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.transport import Transport
from steersman.testing import Environment
from tests.inspector.front_client import Visit, Visitor


@pytest_asyncio.fixture
async def visit() -> AsyncIterator[Visit]:
    """Yield `visit(transport)`, which starts a front for an API server and opens a session."""
    fronts: list[Visitor] = []

    async def start(transport: Transport) -> Visitor:
        visitor = Visitor(transport)
        await visitor.start()
        fronts.append(visitor)
        await visitor.enter()
        return visitor

    yield start
    for each in fronts:
        await each.leave()


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    """Yield an API server in this process."""
    async with Environment() as environment:
        yield environment


@pytest_asyncio.fixture
async def transport(environment: Environment) -> Transport:
    """Return the administrator's transport to the server."""
    server = environment.plane.server
    assert server is not None
    return InProcessTransport(server.handler, environment.token())


@pytest_asyncio.fixture
async def client(transport: Transport) -> Client:
    """Return the administrator's client of the server."""
    return Client(transport, "tests")


@pytest_asyncio.fixture
async def visitor(visit: Visit, transport: Transport) -> Visitor:
    """Return a program with a session of a front for the server."""
    return await visit(transport)
