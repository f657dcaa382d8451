"""A server in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from steersman.testing import Environment
from tests.apiextensions.cluster import Cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Environment() as environment:
        yield Cluster(environment.client())
