"""KMS plugins, each on its own socket."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator

import pytest

from tests.storage.encryption.configured import StartPlugin
from tests.storage.encryption.kms_plugin import KMSPlugin


@pytest.fixture
async def start_plugin() -> AsyncIterator[StartPlugin]:
    """Starts plugins, which end with the test."""
    with tempfile.TemporaryDirectory() as folder:  # names of sockets must be short
        started: list[KMSPlugin] = []

        async def start() -> KMSPlugin:
            started.append(KMSPlugin(f"{folder}/{len(started)}.sock"))
            await started[-1].start()
            return started[-1]

        yield start
        for each in started:
            await each.stop()
