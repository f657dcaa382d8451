"""Fixtures: a server in this process, and a server with helpers for short policies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from steersman.testing import Client, Environment, User

USERS = (User("admin", ("system:masters",)), User("alice", ("dev",)))


@pytest.fixture(scope="session")
def server_options() -> dict[str, Any]:
    return {"users": USERS}


@pytest.fixture
def client(shared_environment: Environment) -> Client:
    return shared_environment.client()


@pytest.fixture
async def own_client() -> AsyncIterator[Client]:
    """Yield a client of a server that no other test uses."""
    async with Environment(users=USERS) as environment:
        yield environment.client()
