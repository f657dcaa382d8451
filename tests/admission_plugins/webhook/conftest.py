"""Fixtures: a server in this process, and a webhook that it can call."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from steersman.server.certificates import CertificateFiles
from steersman.testing import Client, Environment
from tests.admission_plugins.webhook.admission_hook import AdmissionHook


@pytest.fixture
async def hook(hook_files: CertificateFiles) -> AsyncIterator[AdmissionHook]:
    async with AdmissionHook(hook_files) as found:
        yield found


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Environment() as environment:
        yield environment.client()
