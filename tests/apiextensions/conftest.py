"""Servers in this process: one that the tests of a module share, and one of a test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from steersman.testing import Environment
from tests.apiextensions.cluster import Cluster


@pytest.fixture
def cluster(shared_environment: Environment) -> Cluster:
    return Cluster(shared_environment.client())


@pytest.fixture
async def own_cluster() -> AsyncIterator[Cluster]:
    async with Environment() as environment:
        yield Cluster(environment.client())
