"""Clusters that begin with a dump, and their imports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from steersman.dumps.importing import import_cluster


@asynccontextmanager
async def opened(dump: Path, folder: Path) -> AsyncIterator[Client]:
    options = Options(data_dir=folder, listen=False, unsafe_no_fsync=True)
    cluster = Cluster(options, Configuration((), dump=dump))
    await cluster.start()
    try:
        assert await cluster.settle(20)
        yield cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
    finally:
        await cluster.stop()


async def imported(client: Client, folder: Path) -> Path:
    pieces: list[bytes] = []
    await import_cluster(client, pieces.append, secrets=True)
    return written(folder, b"".join(pieces))


def written(folder: Path, data: bytes) -> Path:
    file = folder / f"import-{len(list(folder.iterdir()))}.json"
    file.write_bytes(data)
    return file
