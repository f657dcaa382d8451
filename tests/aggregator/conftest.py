"""A server in this process, and an aggregated server behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Client, Environment, User
from tests.aggregator.extension_server import ExtensionServer, own_address, publish, until_reason

USERS = (User("admin", ("system:masters",)), User("alice", ("dev",)))


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """The authority and certificate of the aggregated server; `admin` is a client's."""
    return ensure_certificates(tmp_path_factory.mktemp("behind"), ["things.default.svc", "127.0.0.1"])


@pytest.fixture
async def client(keys_folder: Path, files: CertificateFiles) -> AsyncIterator[Client]:
    """A client of the server in front, as its administrator."""
    options: dict[str, Any] = {
        "proxy_client_cert_file": str(files.admin),
        "proxy_client_key_file": str(files.admin_key),
        "controllers": ("*",),
    }
    async with Environment(users=USERS, folder=keys_folder, **options) as environment:
        yield environment.client()


@pytest.fixture
async def behind(files: CertificateFiles) -> AsyncIterator[ExtensionServer]:
    """The aggregated server, listening."""
    server = ExtensionServer(files, own_address())
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def things(client: Client, behind: ExtensionServer) -> Client:
    """A client of the server in front, with the aggregated server registered and available."""
    await publish(client, behind)
    await until_reason(client, "Passed")
    return client


Start = Callable[..., Awaitable[Client]]
