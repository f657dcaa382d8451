"""A server in this process, which the tests of a module share, and an aggregated server behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Client, Environment, User
from tests.aggregator.extension_server import ExtensionServer, own_address, publish, until_reason

USERS = (User("admin", ("system:masters",)), User("alice", ("dev",)))


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """The authority and certificate of the aggregated server; `admin` is a client's."""
    return ensure_certificates(tmp_path_factory.mktemp("behind"), ["things.default.svc", "127.0.0.1"])


@pytest.fixture(scope="session")
def server_options(files: CertificateFiles) -> dict[str, Any]:
    """The options of the server in front: with controllers, and a certificate for the aggregated server."""
    return {
        "users": USERS,
        "proxy_client_cert_file": str(files.admin),
        "proxy_client_key_file": str(files.admin_key),
        "controllers": ("*",),
    }


@pytest.fixture
def client(shared_environment: Environment) -> Client:
    """A client of the server in front, as its administrator."""
    return shared_environment.client()


@pytest_asyncio.fixture(loop_scope="session")
async def behind(files: CertificateFiles) -> AsyncIterator[ExtensionServer]:
    """The aggregated server, listening."""
    server = ExtensionServer(files, own_address())
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def things(client: Client, behind: ExtensionServer) -> Client:
    """A client of the server in front, with the aggregated server registered and available."""
    await publish(client, behind)
    await until_reason(client, "Passed")
    return client


@pytest_asyncio.fixture(loop_scope="session")
async def own_things(
    server_options: dict[str, Any], keys_folder: Path, behind: ExtensionServer
) -> AsyncIterator[Client]:
    """A client of a server of the test's own, with the aggregated server registered and available."""
    async with Environment(folder=keys_folder, **server_options) as environment:
        client = environment.client()
        await publish(client, behind)
        await until_reason(client, "Passed")
        yield client


Start = Callable[..., Awaitable[Client]]
