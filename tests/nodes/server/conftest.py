"""A cluster with one simulated node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from tests.nodes.server.requests import Node


@pytest_asyncio.fixture
async def node(keys_folder: Path) -> AsyncIterator[Node]:
    configuration = Configuration(serve_local=True)
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False), configuration)
    await cluster.start()
    try:
        yield Node(cluster)
    finally:
        await cluster.stop()
