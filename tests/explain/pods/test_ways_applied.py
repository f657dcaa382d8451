"""Every way that an explanation suggests is applied to a cluster, where the pod then runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman.api.meta.v1 import DeleteOptions
from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_conflict, is_not_found
from steersman.client.resources import SERVICE_ACCOUNTS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from steersman.explain.explainers import explain
from steersman.explain.finding import Explanation
from steersman.explain.world import LiveWorld
from tests.controllers.waiting import eventually
from tests.explain.pods.recorded_cases import EXPECTED, WITHOUT_WAYS, objects_of

pytestmark = pytest.mark.slow

Plain = dict[str, Any]

_NODES: APIResource[Plain] = APIResource("", "v1", "nodes", "Node", dict, namespaced=False)
_PODS: APIResource[Plain] = APIResource("", "v1", "pods", "Pod", dict)
_RESOURCES: dict[str, APIResource[Plain]] = {
    "Node": _NODES,
    "Pod": _PODS,
    "PersistentVolumeClaim": APIResource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", dict),
    "PersistentVolume": APIResource("", "v1", "persistentvolumes", "PersistentVolume", dict, namespaced=False),
    "StorageClass": APIResource("storage.k8s.io", "v1", "storageclasses", "StorageClass", dict, namespaced=False),
    "CSINode": APIResource("storage.k8s.io", "v1", "csinodes", "CSINode", dict, namespaced=False),
    "PriorityClass": APIResource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", dict, namespaced=False),
}
_OF_THE_SERVER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "selfLink",
    "managedFields",
    "finalizers",
)


_NOT_RETRIED = frozenset({"anti-affinity-of-others", "volume-limits"})
"""Cases whose pod, as upstream's, is not tried again at once when a node is added."""


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[Client]:
    options = Options(data_dir=folder, storage="memory", listen=False)
    cluster = Cluster(options, Configuration(nodes=(), manage_all_nodes=True))
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        await eventually(lambda: client.find(SERVICE_ACCOUNTS, "default", "default"))
        yield client
    finally:
        await cluster.stop()


async def _create(client: Client, plain: Plain) -> None:
    resource = _RESOURCES[plain["kind"]]
    metadata = {key: value for key, value in plain["metadata"].items() if key not in _OF_THE_SERVER}
    made = {**plain, "metadata": metadata}
    made.pop("status", None)
    if plain["kind"] == "PersistentVolume":
        made["spec"] = {**plain["spec"], "claimRef": {**plain["spec"]["claimRef"], "uid": "", "resourceVersion": ""}}
    if plain["kind"] == "PersistentVolumeClaim" and "volumeName" in plain["spec"]:  # the controller binds it
        made["spec"] = {key: value for key, value in plain["spec"].items() if key != "volumeName"}
        made["metadata"] = {key: value for key, value in metadata.items() if key != "annotations"}
    with ignoring(is_conflict):
        await client.create(resource, made, metadata.get("namespace", ""))
    if plain["kind"] == "Node":
        await client.patch(
            resource, metadata["name"], metadata.get("namespace", ""), {"status": plain["status"]}, subresource="status"
        )


async def _fill(client: Client, case: str) -> Plain:
    """Create the objects of a case but for the pending pod, and return that."""
    pending: Plain = {}
    for each in sorted(objects_of(case), key=lambda plain: plain["kind"] != "PersistentVolume"):
        if each["kind"] not in _RESOURCES:
            continue
        if each["metadata"]["name"] == "new":
            pending = each
        elif each["kind"] != "Pod":
            await _create(client, each)

    async def bound() -> bool:
        claims = await client.list(_RESOURCES["PersistentVolumeClaim"], "default")
        return all(
            each["status"].get("phase") == "Bound"
            for each in claims.items
            if each["spec"]["storageClassName"] == "fast"
        )

    if any(each["kind"] == "PersistentVolume" for each in objects_of(case)):
        await eventually(bound)
    for each in objects_of(case):
        if each["kind"] == "Pod" and each["metadata"]["name"] != "new":
            await _create(client, each)
    return pending


def _merged(old: Plain, patch: Plain) -> Plain:
    """Return an object with a merge patch applied."""
    new = {key: value for key, value in old.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if value is not None:
            new[key] = _merged(old.get(key) or {}, value) if isinstance(value, dict) else value
    return new


async def _apply(client: Client, change: Plain) -> None:
    place = change["object"]
    resource = _RESOURCES[place["kind"]]
    name, namespace = place["name"], place.get("namespace", "")
    if change.get("create"):
        await _create(client, {**change["create"], "kind": place["kind"]})
    elif change.get("delete"):
        await client.delete(resource, name, namespace, DeleteOptions(grace_period_seconds=0))
    elif place["kind"] == "Pod":
        pod = await client.get(_PODS, name, namespace)
        await client.delete(_PODS, name, namespace, DeleteOptions(grace_period_seconds=0))
        changed = _merged(pod, change["patch"])
        if "priorityClassName" in change["patch"].get("spec", {}):
            changed["spec"].pop("priority", None)
            changed["spec"].pop("preemptionPolicy", None)
        await _create(client, changed)
    else:
        await client.patch(resource, name, namespace, change["patch"])


async def _explained(client: Client) -> Explanation:
    return await explain(LiveWorld(client), _PODS, "new", "default")


async def _ways(client: Client) -> list[Plain]:
    """Return the ways of the explanation once the scheduler has given its reason."""

    async def refused() -> bool:
        pod = await client.get(_PODS, "new", "default")
        return any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions", ()))

    await eventually(refused)
    (finding, *_) = (await _explained(client)).findings
    assert "ways" in (finding.details or {}), finding
    ways: list[Plain] = finding.details["ways"]
    return ways


async def _runs(client: Client, case: str) -> bool:
    """Return True if the pod runs. No driver attaches the volumes of some cases: there it must have a node."""
    with ignoring(is_not_found):
        pod = await client.get(_PODS, "new", "default")
        if case.startswith("volume-"):
            return bool(pod["spec"].get("nodeName"))
        return bool(pod["status"].get("phase") == "Running")
    return False


@pytest.mark.parametrize("case", sorted(EXPECTED.keys() - WITHOUT_WAYS - {"preemption"}))
async def test_every_way_makes_the_pod_run(case: str, keys_folder: Path) -> None:
    number = count = 0
    while number == 0 or number < count:
        async with _cluster(keys_folder) as client:
            pending = await _fill(client, case)
            await _create(client, pending)
            ways = await _ways(client)
            count = len(ways)
            way = ways[number]
            for change in way["changes"]:
                await _apply(client, change)
            if case in _NOT_RETRIED:
                await client.delete(_PODS, "new", "default", DeleteOptions(grace_period_seconds=0))
                await _create(client, pending)

            async def running() -> bool:
                return await _runs(client, case)

            await eventually(running, seconds=20)
        number += 1
    assert count
