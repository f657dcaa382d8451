"""Definitions that a new cluster has without a write of its own for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree
from typing import Any, Final

from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.cluster.first_definitions import FirstDefinitions, create_if_missing
from steersman.controlplane.options import Options
from steersman.storage.memory import MemoryStorage
from steersman.work.parts import Part
from tests.controllers.waiting import eventually

DEFINITIONS: Final[APIResource[dict[str, Any]]] = APIResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
ADMIN: Final = UserInfo("admin", groups=("system:masters",))
ANY: Final = "any"


def applied_instead(parts: Sequence[type[Part]]) -> Sequence[type[Part]]:
    """Leave out the part, so that the cluster applies its definitions."""
    left = [each for each in parts if not issubclass(each, FirstDefinitions)]
    assert len(left) == len(parts) - 1
    return left


@asynccontextmanager
async def running(folder: Path, **more: Any) -> AsyncIterator[Cluster]:
    options = Options(data_dir=folder, storage="sqlite", listen=False, faults=True)
    cluster = Cluster(options, Configuration((), pools=True, kwok=True), **more)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop()


async def stored(cluster: Cluster) -> dict[str, dict[str, Any]]:
    found = await cluster.client(ADMIN, "test").list(DEFINITIONS)
    return {each["metadata"]["name"]: each for each in found.items}


def comparable(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition without what differs between two clusters: uid, version, times, order of conditions."""
    metadata, status = definition["metadata"], definition["status"]
    assert len(metadata["uid"]) == 36
    assert int(metadata["resourceVersion"]) > 0
    owned = [{**each, "time": ANY} for each in metadata["managedFields"]]
    conditions = sorted(
        ({**each, "lastTransitionTime": ANY} for each in status["conditions"]), key=lambda each: each["type"]
    )
    known = {"uid": ANY, "resourceVersion": ANY, "creationTimestamp": ANY, "managedFields": owned}
    return {**definition, "metadata": {**metadata, **known}, "status": {**status, "conditions": conditions}}


async def test_they_are_as_if_they_had_been_applied(keys_folder: Path, tmp_path: Path) -> None:
    copytree(keys_folder, tmp_path / "new")
    copytree(keys_folder, tmp_path / "applied")
    async with running(tmp_path / "new") as cluster:
        new = await stored(cluster)
    async with running(tmp_path / "applied", adapt=applied_instead) as cluster:
        applied = await stored(cluster)
    assert len(new) == 14
    assert list(new) == list(applied)
    for name, each in new.items():
        assert comparable(each) == comparable(applied[name])


async def test_a_further_start_leaves_them_and_puts_back_what_was_changed(keys_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    copytree(keys_folder, folder)
    async with running(folder) as cluster:
        first = await stored(cluster)
        client = cluster.client(ADMIN, "test")
        await client.delete(DEFINITIONS, "logs.kwok.x-k8s.io")
        stages = first["stages.kwok.x-k8s.io"]
        del stages["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"]
        await client.update(DEFINITIONS, stages)

        async def is_gone() -> bool:
            found = await client.find(DEFINITIONS, "logs.kwok.x-k8s.io")
            return found is None

        await eventually(is_gone)
    async with running(folder) as cluster:
        second = await stored(cluster)
    changed = {"logs.kwok.x-k8s.io", "stages.kwok.x-k8s.io"}
    assert {name for name, each in second.items() if each != first[name]} == changed
    assert "description" in second["stages.kwok.x-k8s.io"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert second["stages.kwok.x-k8s.io"]["metadata"]["uid"] == first["stages.kwok.x-k8s.io"]["metadata"]["uid"]
    assert second["logs.kwok.x-k8s.io"]["metadata"]["uid"] != first["logs.kwok.x-k8s.io"]["metadata"]["uid"]


async def test_a_server_that_is_slower_leaves_what_another_has_stored() -> None:
    storage = MemoryStorage()
    await create_if_missing(storage, "/registry/a", b"first")
    await create_if_missing(storage, "/registry/a", b"second")
    found = await storage.get("/registry/a")
    assert found is not None
    assert found.value == b"first"
    await storage.close()
