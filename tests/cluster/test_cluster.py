"""A control plane with what works on it."""

from __future__ import annotations

from pathlib import Path

from steersman.api.core.v1 import Container, Namespace, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS
from steersman.cluster.cluster import Cluster
from steersman.controlplane.options import Options
from tests.controllers.waiting import eventually


async def test_pods_can_be_made_in_a_fresh_namespace_which_goes_again(tmp_path: Path) -> None:
    cluster = Cluster(Options(data_dir=tmp_path, storage="memory", listen=False))
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="a")))

        async def accounts() -> int:
            return len((await client.list(SERVICE_ACCOUNTS, "a")).items)

        await eventually(accounts)
        pod = Pod(
            metadata=ObjectMeta(name="web", namespace="a"),
            spec=PodSpec(containers=[Container(name="web", image="nginx")]),
        )
        made = await client.create(PODS, pod)
        assert made.spec.service_account_name == "default"
        await client.delete(NAMESPACES, "a")

        async def gone() -> bool:
            return "a" not in [each.metadata.name for each in (await client.list(NAMESPACES)).items]

        await eventually(gone)
    finally:
        await cluster.stop()
