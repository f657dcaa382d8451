"""Clusters with kwok's kinds, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from tests.controllers.waiting import eventually

Plain = dict[str, Any]
STAGES: Final[APIResource[Plain]] = APIResource("kwok.x-k8s.io", "v1alpha1", "stages", "Stage", dict, namespaced=False)
DEFINITIONS: Final[APIResource[Plain]] = APIResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
WIDGETS: Final[APIResource[Plain]] = APIResource("example.com", "v1", "widgets", "Widget", dict)
WIDGET: Final[Plain] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@asynccontextmanager
async def cluster_with_kwok(data: Path, **more: Any) -> AsyncIterator[Client]:
    """Run a cluster with kwok's kinds, and yield an administrator's client."""
    configuration = Configuration(kwok=True, **more)
    cluster = Cluster(Options(data_dir=data, storage="memory", listen=False), configuration)
    await cluster.start()
    try:
        yield cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
    finally:
        await cluster.stop()


async def condition(client: Client, stage: str) -> tuple[str, str, str]:
    """Return status, reason and message of a Stage's condition, once it has one."""

    async def found() -> tuple[str, str, str] | None:
        status = (await client.get(STAGES, stage)).get("status") or {}
        for each in status.get("conditions") or ():
            return each["status"], each["reason"], each["message"]
        return None

    result = await eventually(found)
    assert result is not None
    return result
