"""Fixtures: a server for client requests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from steersman.net.tls import Certificate
from tests.net.client.origin import Origin


@pytest.fixture
async def origin(certificate: Certificate) -> AsyncIterator[Origin]:
    found = Origin(certificate)
    async with found.serving():
        yield found
