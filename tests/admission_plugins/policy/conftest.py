"""Fixtures: a server in this process, and a server with helpers for short policies."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from steersman.testing import Client, Environment, User


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    users = (User("admin", ("system:masters",)), User("alice", ("dev",)))
    async with Environment(users=users) as environment:
        yield environment.client()
