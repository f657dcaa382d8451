"""Fixtures: a server in this process, and a webhook that it can call."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from steersman.server.certificates import CertificateFiles
from steersman.testing import Client, Environment
from tests.admission_plugins.webhook.admission_hook import AdmissionHook


@pytest_asyncio.fixture(loop_scope="session")
async def hook(hook_files: CertificateFiles) -> AsyncIterator[AdmissionHook]:
    async with AdmissionHook(hook_files) as found:
        yield found


@pytest.fixture
def client(shared_environment: Environment) -> Client:
    return shared_environment.client()


@pytest_asyncio.fixture(loop_scope="session")
async def own_client() -> AsyncIterator[Client]:
    """Yield a client of a server that no other test uses."""
    async with Environment() as environment:
        yield environment.client()
