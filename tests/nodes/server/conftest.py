"""A cluster with one simulated node, which the tests of a module share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from tests.nodes.server.requests import Node


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def _first_cluster(keys_folder: Path) -> AsyncIterator[Cluster]:
    """Yield the cluster of `shared_cluster`, once its controllers have nothing to do."""
    configuration = Configuration(serve_local=True)
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False), configuration)
    await cluster.start()
    try:
        assert await cluster.settle(20)
        yield cluster
    finally:
        await cluster.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def shared_cluster(_first_cluster: Cluster) -> AsyncIterator[Cluster]:
    """Yield a cluster in its initial state, which the tests of a module use one after the other."""
    first = _first_cluster.plane.snapshot()
    yield _first_cluster
    await _first_cluster.restore(first)


@pytest.fixture
def node(shared_cluster: Cluster) -> Node:
    return Node(shared_cluster)
