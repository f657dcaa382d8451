"""Providers from configurations."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from steersman.storage.encryption.configuration import parse_configuration
from steersman.storage.encryption.metrics import EnvelopeMetrics, TransformationMetrics
from steersman.storage.encryption.providers import Metrics, Providers
from tests.storage.encryption.kms_plugin import KMSPlugin

StartPlugin = Callable[[], Awaitable[KMSPlugin]]


@asynccontextmanager
async def providers_of(document: dict[str, Any], *, reloads: bool = False) -> AsyncIterator[Providers]:
    """The providers of a configuration, whose plugins are being asked."""
    configuration = parse_configuration(json.dumps(document).encode(), Path("encryption.yaml"), reloads=reloads)
    providers = Providers.from_configuration(configuration, Metrics(TransformationMetrics(), EnvelopeMetrics("server")))
    await providers.start()
    try:
        yield providers
    finally:
        await providers.stop()


def of_resources(*resources: str, providers: list[dict[str, Any]]) -> dict[str, Any]:
    """A configuration with one rule."""
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": list(resources), "providers": providers}],
    }
