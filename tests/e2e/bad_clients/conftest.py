"""Fixtures with bad clients for the module's server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from steersman.testing import ServerProcess
from tests.e2e.bad_clients.bad_client import BadClient


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., BadClient]]:
    """Yield a function that connects bad clients to the module's server, or to `to`."""
    clients: list[BadClient] = []

    def make(to: ServerProcess | None = None, *, admin: bool = True, alpn: tuple[str, ...] = ()) -> BadClient:
        client = BadClient(to or request.getfixturevalue("server"), admin=admin, alpn=alpn)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()
