"""Servers of declared classes, in memory and without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio

from steersman import Server
from tests.library.requests import write_tokens

Serve = Callable[..., Awaitable[Server]]


@pytest_asyncio.fixture
async def serve(keys_folder: Path, tmp_path: Path) -> AsyncIterator[Serve]:
    """`await serve(Flunder, Fischer)` starts a server of the test's own, which stops after it."""
    started: list[Server] = []

    async def start(*resources: type[Any], **options: Any) -> Server:
        tokens = str(write_tokens(tmp_path))
        fields = {"data_dir": keys_folder, "storage": "memory", "listen": False, "token_auth_file": tokens, **options}
        server = Server(*resources, **fields)
        await server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop()
