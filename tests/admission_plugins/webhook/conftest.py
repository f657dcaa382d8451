"""A server in this process, and a webhook that it can ask."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Client, Environment
from tests.admission_plugins.webhook.admission_hook import AdmissionHook


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return ensure_certificates(tmp_path_factory.mktemp("certificates"), ["127.0.0.1", "hook.default.svc"])


@pytest.fixture
async def hook(files: CertificateFiles) -> AsyncIterator[AdmissionHook]:
    found = AdmissionHook(files)
    await found.start()
    yield found
    await found.stop()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Environment() as environment:
        yield environment.client()
