"""Fixtures: small servers, started and stopped around each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.endpoints.small_server import SmallServer

StartServer = Callable[..., Awaitable[SmallServer]]


@pytest.fixture
async def start_server() -> AsyncIterator[StartServer]:
    """Yield `start_server(paths={...}, **config)`, which starts a SmallServer."""
    started: list[SmallServer] = []

    async def start(paths: dict[str, Any] | None = None, **options: Any) -> SmallServer:
        server = SmallServer(**options)
        started.append(server)
        await server.start(paths)
        return server

    yield start
    for server in started:
        await server.stop()


@pytest.fixture
async def small(start_server: StartServer) -> SmallServer:
    return await start_server()
