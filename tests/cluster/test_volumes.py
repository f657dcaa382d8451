"""A cluster with storage: StatefulSets get their volumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman.api.apps.v1 import StatefulSet, StatefulSetSpec
from steersman.api.meta.v1 import DeleteOptions, LabelSelector, ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    VOLUME_ATTACHMENTS,
)
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options
from tests.controllers.kubelet import LABELS, template
from tests.controllers.volumes.objects import claim, pod
from tests.controllers.waiting import eventually


async def ready(client: Client, name: str) -> bool:
    found = [each for each in (await client.list(PODS, "default")).items if each.metadata.name == name]
    conditions = found[0].status.conditions if found else []
    return any(each.type == "Ready" and each.status == "True" for each in conditions)


async def test_a_stateful_set_has_volumes_that_can_be_made_larger(keys_folder: Path) -> None:
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False))
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        spec = StatefulSetSpec(
            replicas=1,
            service_name="s",
            selector=LabelSelector(match_labels=dict(LABELS)),
            template=template(),
            volume_claim_templates=[claim("data", storage_class=None)],
        )
        await client.create(STATEFUL_SETS, StatefulSet(metadata=ObjectMeta(name="web", namespace="default"), spec=spec))

        async def first_is_ready() -> bool:
            return await ready(client, "web-0")

        await eventually(first_is_ready)
        (attachment,) = (await client.list(VOLUME_ATTACHMENTS)).items
        assert attachment.status.attached
        node = await client.get(NODES, "node-0")
        assert [each.name for each in node.status.volumes_attached] == node.status.volumes_in_use
        larger = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
        await client.patch(PERSISTENT_VOLUME_CLAIMS, "data-web-0", "default", larger)

        async def is_larger() -> bool:
            claim = await client.get(PERSISTENT_VOLUME_CLAIMS, "data-web-0", "default")
            return claim.status.capacity == {"storage": "3Gi"} and not claim.status.conditions

        await eventually(is_larger)
        await client.delete(STATEFUL_SETS, "web", "default")
        await client.delete(PERSISTENT_VOLUME_CLAIMS, "data-web-0", "default")

        async def all_is_gone() -> bool:
            left: list[Any] = [
                *(await client.list(PERSISTENT_VOLUMES)).items,
                *(await client.list(VOLUME_ATTACHMENTS)).items,
                *(await client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items,
            ]
            return not left

        await eventually(all_is_gone)
        assert (await client.get(NODES, "node-0")).status.volumes_in_use == []
    finally:
        await cluster.stop()


async def test_a_pod_waits_until_its_volume_is_let_go_by_another_node(keys_folder: Path) -> None:
    options = Options(data_dir=keys_folder, storage="memory", listen=False)
    cluster = Cluster(options, Configuration(nodes=(NodeGroup(count=2),)))
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        await client.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class=None))
        await client.create(PODS, pod("first", "a", "node-0"))

        async def first() -> bool:
            return await ready(client, "first")

        async def second() -> bool:
            return await ready(client, "second")

        await eventually(first)
        await client.create(PODS, pod("second", "a", "node-1"))

        async def waits() -> list[str]:
            pod = await client.get(PODS, "second", "default")
            return [each.state.waiting.reason for each in pod.status.container_statuses if each.state.waiting]

        assert await eventually(waits) == ["ContainerCreating"]
        await client.delete(PODS, "first", "default", DeleteOptions(grace_period_seconds=0))
        await eventually(second)
        (attachment,) = (await client.list(VOLUME_ATTACHMENTS)).items
        assert attachment.spec.node_name == "node-1"
    finally:
        await cluster.stop()


@pytest.mark.slow
async def test_pods_keep_their_volumes_when_a_cluster_starts_again(tmp_path: Path) -> None:
    for first in (True, False):
        cluster = Cluster(Options(data_dir=tmp_path, listen=False))
        await cluster.start()
        try:
            client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
            if first:
                await client.create(PERSISTENT_VOLUME_CLAIMS, claim(storage_class=None))
                await client.create(PODS, pod("p", "a", "node-0"))

            async def in_use(client: Client = client) -> bool:
                status = (await client.get(NODES, "node-0")).status
                names = [each.name for each in status.volumes_attached]
                return bool(names) and names == status.volumes_in_use and await ready(client, "p")

            await eventually(in_use)
            assert len((await client.list(VOLUME_ATTACHMENTS)).items) == 1
        finally:
            await cluster.stop()
